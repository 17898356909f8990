"""Sweeps of real loaders: what they choose, and that nothing of them stays.

What a sweep chooses on given times is in ``test_sweep_climb``; where the machine decides them, the
test is a soak test.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import workbench as wb
from tests.tuning.loops import Sleepy, rows, state_bytes, training
from workbench.clinic.work import burn
from workbench.tuning.sweep import LoaderSweep, sweep_loader

pytestmark = pytest.mark.slow


STEP_S = 0.03


class Device(nn.Module):
    """A network that waits as if for a device, and leaves the processors to the loader."""

    def __init__(self, width: int = 4, seconds: float = STEP_S) -> None:
        super().__init__()
        self.layer = nn.Linear(width, 2)
        self.seconds = seconds

    def forward(self, batch: Tensor) -> Tensor:
        answer: Tensor = self.layer(batch)
        time.sleep(self.seconds)
        return answer


class Busy(Dataset[Any]):
    """Rows that take processor time."""

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> Any:
        burn(0.002)
        return torch.full((4,), float(index % 7)), torch.tensor(index % 2)


class Stream(IterableDataset[Any]):
    """Rows that every worker reads from the first to the last, each slowly."""

    def __iter__(self) -> Iterator[Any]:
        for number in range(2_000):
            time.sleep(0.004)
            yield torch.full((4,), float(number)), torch.tensor(number % 2)


@pytest.fixture
def one_cpu() -> Iterator[None]:
    """As in a container that grants a single processor."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def workload(data: Any, **options: Any) -> wb.Workload:
    return training(data, Device(**options))


@pytest.mark.soak
def test_a_loader_that_waits_gets_the_workers_that_the_step_needs() -> None:
    """Eight samples of 7 ms are 56 ms against a step of 30: two workers, or one more if busy."""
    work = workload(DataLoader(Sleepy(0.007, 4096), batch_size=8, shuffle=True))
    before, random = state_bytes(work), torch.get_rng_state()
    found = sweep_loader(work, budget_s=20)
    assert found.settings.workers in {2, 3, 4}
    assert found.ratio is not None
    assert found.ratio < 0.7  # 86 ms before, 30 after
    assert state_bytes(work) == before
    assert torch.equal(torch.get_rng_state(), random)
    assert not multiprocessing.active_children()
    assert work.data.num_workers == 0
    again = LoaderSweep.from_json(found.to_json())
    assert again == found
    assert len(found.trials) == len(found.rows)


def test_a_loader_that_keeps_up_is_left_alone() -> None:
    """Rows at hand take well below a percent of a step of 30 ms."""
    found = sweep_loader(workload(DataLoader(rows(), batch_size=2)), budget_s=20)
    assert found.ended == "keeps_up"
    assert found.settings == wb.Settings()
    assert "keeps up" in found.sentence
    assert found.rows == ()


def test_rows_of_a_table_are_fetched_at_once(tmp_path: Path) -> None:
    """A thousand index calls and their stacking against one: workers are never tried (#10260)."""
    table = TensorDataset(torch.randn(20_000, 4), torch.randint(2, (20_000,)))
    work = workload(DataLoader(table, batch_size=1_000, shuffle=True), seconds=0.002)
    found = sweep_loader(work, budget_s=20, folder=tmp_path)
    assert found.settings == wb.Settings(batched_fetch=True)
    assert all(row.workers == 0 for row in found.rows)
    assert not hasattr(table, "__getitems__")
    assert (tmp_path / "loader_sweep.json").exists()


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore:This DataLoader will create 4 worker processes")
def test_on_one_processor_many_workers_give_way_to_few(one_cpu: None) -> None:
    """Batch and step share it, so that no number of workers is faster than one or none."""
    loader = DataLoader(Busy(), batch_size=8, num_workers=4)
    found = sweep_loader(workload(loader, seconds=0.001), budget_s=None)
    assert found.settings.workers in {0, 1}
    assert max(row.workers for row in found.rows if not row.as_it_is) <= 1
    assert any(row.as_it_is and row.workers == 4 for row in found.rows)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore:This DataLoader will create 4 worker processes")
def test_a_stream_that_does_not_divide_itself_gets_one_worker_at_most() -> None:
    """Four workers give every sample four times, so their rate is none."""
    found = sweep_loader(workload(DataLoader(Stream(), batch_size=8, num_workers=4)), budget_s=None)
    assert found.settings.workers in {0, 1}
    assert "every sample comes 4 times" in found.sentence
    assert max(row.workers for row in found.rows if not row.as_it_is) <= 1


def test_an_interrupt_leaves_nothing_behind() -> None:
    """The thirtieth question whether to stop comes while blocks are measured."""
    asked = iter(range(10_000))
    work = workload(DataLoader(Sleepy(0.007, 4096), batch_size=8, shuffle=True))
    before, random = state_bytes(work), torch.get_rng_state()
    found = sweep_loader(work, budget_s=None, interrupted=lambda: next(asked) > 30)
    assert found.ended == "interrupted"
    assert state_bytes(work) == before
    assert torch.equal(torch.get_rng_state(), random)
    assert not multiprocessing.active_children()
    assert work.data.num_workers == 0
    again = LoaderSweep.from_json(found.to_json())
    assert again == found
    assert len(found.trials) == len(found.rows)


def test_without_a_loader_there_is_nothing_to_sweep() -> None:
    batches = [(torch.randn(8, 4), torch.randint(2, (8,))) for _ in range(8)]
    found = sweep_loader(workload(batches))
    assert found.ended == "fixed"
    assert found.settings == wb.Settings()
    assert "no loader to sweep" in found.sentence


def test_a_loader_that_fails_by_itself_is_told() -> None:
    class Broken(Busy):
        def __getitem__(self, index: int) -> Any:
            raise ValueError("no such picture")

    found = sweep_loader(workload(DataLoader(Broken(), batch_size=8)))
    assert found.ended == "failed"
    assert "no such picture" in found.sentence
