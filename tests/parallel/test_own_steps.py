"""A step of the user's own is spread, too, if it calls the model that it is given."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

import workbench as wb
from workbench.errors import WorkloadError

pytestmark = pytest.mark.soak


def workload(*, given: bool) -> wb.Workload:
    mine = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(mine.parameters(), lr=0.1)

    def step(model: Any, batch: Any) -> torch.Tensor:
        inputs, targets = batch
        optimizer.zero_grad()
        loss = functional.cross_entropy((model if given else mine)(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    data = TensorDataset(torch.randn(32, 4), torch.randint(2, (32,)))
    return wb.Workload(mine, data, step=step, batch_size=8)


def test_a_step_that_calls_its_model_is_averaged(tmp_path: Path) -> None:
    run = wb.profile(
        workload(given=True), wb.Settings(parallel="ddp"), steps=3, folder=tmp_path, progress=False
    )
    assert set(run.communication["collective"]) == {"all_reduce"}
    assert run.record.samples_per_step == 8


def test_a_step_that_calls_another_model_trains_each_rank_by_itself(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="the ranks end with different weights"):
        wb.profile(
            workload(given=False),
            wb.Settings(parallel="ddp"),
            steps=3,
            folder=tmp_path,
            progress=False,
        )
    assert not list(tmp_path.iterdir())
