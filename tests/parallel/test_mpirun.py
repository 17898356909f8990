"""``wb.profile`` under a real mpirun is the same as under torchrun."""

from pathlib import Path

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.settings import Parallel

pytestmark = pytest.mark.soak


def loop() -> wb.Workload:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    inputs, targets = torch.randn(256, 16), torch.randint(0, 4, (256,))
    data = torch.utils.data.TensorDataset(inputs, targets)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return wb.Workload(model, data, loss=nn.functional.cross_entropy, optimizer=optimizer)


def test_two_ranks_by_mpirun_give_the_run_and_loss_of_torchrun(tmp_path: Path) -> None:
    runs = {}
    for launcher in ("local", "mpirun"):
        parallel = Parallel(mode="ddp", world_size=2, launcher=launcher)  # type: ignore[arg-type]
        runs[launcher] = wb.profile(
            loop(), wb.Settings(parallel=parallel), steps=4, folder=tmp_path / launcher
        )
    for run in runs.values():
        assert [rank.rank for rank in run.ranks] == [0, 1]
        assert run.communication is not None
    local, mpirun = (runs[name].record for name in ("local", "mpirun"))
    assert local is not None
    assert mpirun is not None
    assert mpirun.loss == pytest.approx(local.loss, rel=1e-5)
