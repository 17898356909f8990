"""L03: ``find_unused_parameters`` left on, in two real ranks."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

import workbench as wb
from workbench.parallel.log_warnings import log_warnings
from workbench.run.beside import beside
from workbench.settings import Parallel

LEFT_ON = wb.Settings(parallel=Parallel(mode="ddp", find_unused_parameters=True))


def training() -> wb.Workload:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
    data = TensorDataset(torch.randn(64, 16), torch.randint(4, (64,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return wb.Workload(
        model, data, loss=functional.cross_entropy, optimizer=optimizer, batch_size=8
    )


def test_warnings_that_pass_by_python_are_read_from_the_log(tmp_path: Path) -> None:
    """Two ranks say the same, one says something else; errors and other lines are no warnings."""
    said = "[rank{}]:[W1203 06:58:41.331938786 reducer.cpp:1529] Warning: {} (function operator())"
    lines = [
        said.format(0, "find_unused_parameters=True was specified."),
        "training",
        said.format(1, "find_unused_parameters=True was specified."),
        "[E1203 06:58:41.331938786 reducer.cpp:1529] Error: no warning (function f)",
        "[W1203 06:58:42.000000000 socket.cpp:752] Warning: slow name server",
    ]
    (tmp_path / "log").write_text("\n".join(lines))
    assert log_warnings(tmp_path) == [
        "UserWarning: find_unused_parameters=True was specified.",
        "UserWarning: slow name server",
    ]


@pytest.mark.slow
def test_torchs_own_warning_is_told_and_the_losses_are_those_of_one_process(
    tmp_path: Path,
) -> None:
    work = training()
    ranks = wb.profile(work, LEFT_ON, steps=4, folder=tmp_path, progress=False)
    (found,) = (each for each in ranks.findings if each.code == "WB403")
    assert "did not find any unused parameters" in str(found.evidence["warning"])
    assert found.saving_ns_per_step_at_most is None
    assert found.setting is not None
    assert found.setting["parallel"]["find_unused_parameters"] is False
    alone = wb.profile(work, steps=4, folder=tmp_path, progress=False)
    assert alone.losses is not None
    assert ranks.losses is not None
    count = min(len(alone.losses), len(ranks.losses))
    assert count >= 4
    assert ranks.losses[:count] == pytest.approx(alone.losses[:count], rel=1e-4)
    assert len(set(ranks.losses)) > 1
    rows = {label: pair for label, *pair in beside(alone, ranks)}
    assert rows[f"mean loss of the first {count} steps"][0] == pytest.approx(
        rows[f"mean loss of the first {count} steps"][1]
    )


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_turning_it_off_is_measured_and_no_effect_is_an_answer(tmp_path: Path) -> None:
    """KAIR's answer was no measurable change; a claim needs an interval that leaves out 1."""
    off = wb.Settings(parallel=Parallel(mode="ddp", find_unused_parameters=False))
    asked: dict[str, Any] = {"steps": 20, "blocks": 3, "time_limit_s": 1000, "progress": False}
    found = wb.verify(training(), off, before=LEFT_ON, folder=tmp_path, **asked)
    change = found.change
    assert found.parity is not None
    assert found.parity.ok
    assert None not in (change.low, change.high)
    claims = change.verdict in ("faster", "slower")
    assert not claims or not change.low <= 1 <= change.high
