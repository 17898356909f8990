"""Do linear layers multiply in fp8, in both directions, and are they given back?

A CPU imitates fp8, so what an accelerator would compute can be looked at here.
"""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.workload.six import SIX
from tests.workload.state_bytes import difference, process_bytes, state_bytes
from tests.workload.zoo import everything
from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.workload import Workload, precision, prepare


@pytest.fixture
def imitated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it run here."""
    monkeypatch.setattr(precision, "why_no_fp8", lambda _: None)


def _results(work: Workload, settings: Settings) -> list[Tensor]:
    """The loss and the gradients of one step."""
    with prepare(work, settings) as training:
        loss = training.step(next(training.batches()))
        assert loss is not None
        gradients = [p.grad for p in work.model.parameters() if p.grad is not None]
        return [loss.clone(), *(gradient.clone() for gradient in gradients)]


@pytest.mark.usefixtures("imitated")
@pytest.mark.parametrize("rows", [16, 10])
def test_products_and_gradients_are_those_of_fp32_to_the_digits_of_fp8(rows: int) -> None:
    """Numbers keep 3 bits forward, 2 backward: each is off by at most 1/16 and 1/8 of itself.

    Over many of them errors average out: a fifth, over three layers, is beyond what they sum to.
    10 rows are no multiple of 16, and are filled up.
    """
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 32), nn.Linear(32, 4))
    batch = (torch.randn(rows, 32), torch.randint(0, 4, (rows,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    work = Workload(model, [batch], loss=functional.cross_entropy, optimizer=optimizer)
    exact, rounded = _results(work, Settings()), _results(work, Settings(precision="fp8"))
    for one, two in zip(exact, rounded, strict=True):
        assert one.dtype == two.dtype
        off = ((one - two).norm() / one.norm()).item()
        assert off < 0.2
    assert not torch.equal(exact[1], rounded[1])


@pytest.mark.usefixtures("imitated")
def test_what_fits_is_said_and_all_is_put_back(tmp_path: Path) -> None:
    """Of the transformer's nine layers the eight of width 16 and 32 fit; 17 tokens do not."""
    work = SIX["transformer"](tmp_path)
    before = state_bytes(*everything(work)), process_bytes()
    for kept in (False, True):
        with prepare(work, Settings(precision="fp8"), keep_training=kept) as training:
            assert "8 of 9 linear layers multiply in fp8" in training.notes
            training.step(next(training.batches()))
        assert not any("forward" in vars(module) for module in work.model.modules())
        if not kept:
            after = state_bytes(*everything(work)), process_bytes()
            for old, new in zip(before, after, strict=True):
                assert old == new, difference(old, new)


@pytest.mark.usefixtures("imitated")
def test_a_model_without_a_layer_that_fits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="none of its 1 linear layers has sizes"):
        prepare(SIX["rnn"](tmp_path), Settings(precision="fp8")).__enter__()
