"""``wb.verify(work, finding)``: the switch that a finding carries, measured on the loop itself."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import workbench as wb
from tests.findings.loading import Working
from tests.findings.loops import fired

pytestmark = pytest.mark.slow


def work_on(loader: DataLoader[Any]) -> wb.Workload:
    """A step on the first two of five numbers a sample."""
    model = nn.Linear(5, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step(model: nn.Module, batch: Any) -> Any:
        numbers = batch[0] if isinstance(batch, list) else batch
        optimizer.zero_grad()
        loss: Any = functional.mse_loss(model(numbers), numbers[:, :2])
        loss.backward()
        optimizer.step()
        return loss

    return wb.Workload(model, loader, step=step, optimizer=optimizer, name="loop")


def rows() -> wb.Workload:
    """WB102: 4096 rows of a table in memory, each asked for by itself at some microseconds."""
    return work_on(DataLoader(TensorDataset(torch.randn(200_000, 5)), 4096))


def sleepy() -> wb.Workload:
    """WB101: 20 ms a sample of waiting, in the training process."""
    return work_on(DataLoader(Working(sleep=0.02), 2))


@pytest.mark.parametrize(
    ("make", "code", "field"),
    [(rows, "WB102", "batched_fetch"), (sleepy, "WB101", "workers")],
    ids=["WB102", "WB101"],
)
def test_the_switch_of_a_finding_is_measured_and_lies_within_its_bound(
    tmp_path: Path, one_thread: None, make: Any, code: str, field: str
) -> None:
    """A sample that sleeps, or is asked for by itself, is most of the step: the gain is large."""
    work = make()
    run = wb.profile(work, steps=20, folder=tmp_path, progress=False)
    finding = fired(run, code)
    assert finding.setting is not None
    assert field in finding.setting
    answer = wb.verify(
        work, finding, steps=6, blocks=4, record=None, folder=tmp_path, progress=False
    )
    assert answer.finding is finding
    assert answer.bound is not None
    assert answer.change.ratio is not None
    assert answer.change.ratio < 0.9
    assert answer.bound.held is not False
