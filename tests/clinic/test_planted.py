"""Each fault is really there, by clocks that know nothing of ours, and gone at scale 0."""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from workbench import clinic
from workbench.clinic import processes, samples
from workbench.clinic.training import BATCH


def cpu_s(call: Callable[[], object]) -> float:
    """Processor time of this thread: other processes cannot add to it."""
    began = time.thread_time()
    call()
    return time.thread_time() - began


def wall_s(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def loader(name: str, scale: float = 1.0) -> Any:
    return clinic.case(name, scale=scale).workload().data


def test_decoding_takes_processor_time() -> None:
    def used(scale: float) -> float:
        data = loader("slow_decode", scale).dataset
        return cpu_s(lambda: [data[index] for index in range(5)])

    assert used(1) >= 5 * samples.DECODE_S
    assert used(0.5) >= 5 * samples.DECODE_S / 2
    assert used(0) < 5 * samples.DECODE_S / 4


def test_storage_takes_time_and_hardly_any_processor() -> None:
    data = loader("slow_storage").dataset
    assert wall_s(lambda: [data[index] for index in range(5)]) >= 5 * samples.LATENCY_S
    assert cpu_s(lambda: [data[index] for index in range(5)]) < 5 * samples.LATENCY_S / 2
    assert torch.equal(data[3][0], data.rows[3])
    assert loader("slow_storage", 0).dataset[3][0].shape == data[3][0].shape


def test_collate_takes_longer_than_the_samples() -> None:
    made = loader("slow_collate")
    batch = [made.dataset[index] for index in range(BATCH)]
    fetched = cpu_s(lambda: [made.dataset[index] for index in range(BATCH)])
    assert cpu_s(lambda: made.collate_fn(batch)) > 2 * fetched


def test_a_table_row_by_row_takes_many_times_one_index_call() -> None:
    rows, whole = loader("row_wise_table"), loader("row_wise_table", 0)
    indices = list(range(samples.TABLE_BATCH))
    slow = cpu_s(lambda: rows.collate_fn([rows.dataset[index] for index in indices]))
    quick = min(
        cpu_s(lambda: whole.collate_fn(whole.dataset.__getitems__(indices))) for _ in range(3)
    )
    assert slow > 5 * quick
    first, twin = next(iter(rows)), next(iter(whole))
    assert all(torch.equal(a, b) for a, b in zip(first[0], twin[0], strict=True))


def test_a_worker_takes_its_time_to_start_and_epochs_are_short() -> None:
    made = loader("startup_each_epoch")
    assert wall_s(lambda: made.worker_init_fn(0)) >= processes.START_S
    assert len(made) == processes.EPOCH
    assert not made.persistent_workers
    assert wall_s(lambda: loader("startup_each_epoch", 0).worker_init_fn(0)) < processes.START_S


def test_one_sample_uses_as_many_threads_as_torch_has() -> None:
    """Threads of a process that share its work use its processor time, and not this thread's."""
    made, before = loader("oversubscription"), torch.get_num_threads()

    def threads(scale: float) -> float:
        loader("oversubscription", scale).worker_init_fn(0)
        began, own = time.process_time(), time.thread_time()
        for index in range(5):
            made.dataset[index]
        return (time.process_time() - began) / (time.thread_time() - own)

    try:
        assert threads(1) > 2
        assert torch.get_num_threads() == processes.THREADS
        threads(0)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_worker_0_is_the_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    data = loader("one_slow_worker").dataset

    def used(worker: int) -> float:
        monkeypatch.setattr(processes, "get_worker_info", lambda: SimpleNamespace(id=worker))
        return cpu_s(lambda: [data[index] for index in range(5)])

    assert used(0) >= 5 * processes.SLOW_S
    assert used(1) < 5 * processes.SLOW_S / 2


@pytest.mark.parametrize("name", ["many_small_tensors", "pinning_cost"])
def test_a_batch_has_hundreds_of_tensors_and_its_twin_one(name: str) -> None:
    def batch(scale: float) -> Any:
        made = loader(name, scale)
        return made.collate_fn([made.dataset[index] for index in range(BATCH)])[0]

    assert len(batch(1)) == processes.TENSORS
    assert isinstance(batch(0), torch.Tensor)
    # Each is memory of its own, or they would travel as one.
    assert len({part.untyped_storage().data_ptr() for part in batch(1)}) == processes.TENSORS


def first_batch(made: Any) -> Any:
    """Without worker processes; in one call where the data set can."""
    several = getattr(made.dataset, "__getitems__", lambda some: [made.dataset[i] for i in some])
    return made.collate_fn(several(list(range(4))))


@pytest.mark.parametrize("case", clinic.CASES, ids=lambda case: case.name)
def test_every_workload_trains(case: clinic.Case) -> None:
    for scale in (0, 1):
        work = clinic.case(case.name, scale=scale).workload()
        batch = first_batch(work.data)
        work.loss(work.model(*batch[:-1]), batch[-1]).backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in work.model.parameters())
