"""Each fault is really there, by clocks that know nothing of ours, and gone at scale 0."""

import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

from tests.clinic.batches import first_batch
from workbench import clinic
from workbench.clinic import loops, models, processes, ranks, samples
from workbench.clinic.training import BATCH, CLASSES, FEATURES
from workbench.workload import Control


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


def test_a_list_of_arrays_costs_torch_many_times_a_stack() -> None:
    def used(scale: float) -> float:
        made = loader("list_to_tensor", scale)
        batch = [made.dataset[index] for index in range(BATCH)]
        return min(cpu_s(lambda: made.collate_fn(batch)) for _ in range(3))

    assert used(1) > 10 * used(0)


def trained(name: str, scale: float, steps: int = 4) -> list[FunctionEvent]:
    """Operators of some steps, as torch's own profiler tells them."""
    work = clinic.case(name, scale=scale).workload()
    batch = first_batch(work.data)
    control = Control(device=torch.device("cpu"))
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(steps):
            if work.step is not None:
                work.step(work.model, batch, *([control] if work.takes_control else []))
                continue
            work.optimizer.zero_grad()
            work.loss(work.model(*batch[:-1]), batch[-1]).backward()
            work.optimizer.step()
    return list(seen.events())


def calls(name: str, scale: float, operator: str) -> int:
    return sum(event.name == operator for event in trained(name, scale))


def test_numbers_are_read_from_the_device_in_every_step() -> None:
    assert calls("sync_in_loop", 1, "aten::item") == 4 * loops.READS
    assert calls("sync_in_loop", 0.5, "aten::item") == 4 * loops.READS / 2
    assert calls("sync_in_loop", 0, "aten::item") == 0


def test_a_tiny_batch_launches_as_much_as_a_usual_one() -> None:
    assert calls("tiny_batch", 1, "aten::linear") == calls("tiny_batch", 0, "aten::linear") > 0
    assert loader("tiny_batch").batch_size == models.TINY
    assert loader("tiny_batch", 0).batch_size == models.USUAL


def test_weights_are_cast_for_every_use_or_once() -> None:
    """Twelve uses of a weight and a bias; the last layer's two and inputs come on top."""
    apart, together = (calls("repeated_casts", scale, "aten::_to_copy") for scale in (1, 0))
    assert apart - together >= 4 * 2 * (models.CALLS - 1)


def test_sizes_are_odd_or_multiples_of_eight() -> None:
    def sizes(scale: float) -> set[int]:
        weights = clinic.case("misaligned_matmul", scale=scale).workload().model.parameters()
        return {size for weight in weights if weight.dim() == 2 for size in weight.shape}

    assert models.ODD in sizes(1)
    assert all(size % 8 == 0 for size in sizes(0) - {CLASSES})


def test_the_optimizer_takes_operators_for_each_parameter_or_one_for_all() -> None:
    weights = len(list(clinic.case("single_tensor_optimizer").workload().model.parameters()))
    assert calls("single_tensor_optimizer", 1, "aten::addcdiv_") == 4 * weights
    assert calls("single_tensor_optimizer", 0, "aten::addcdiv_") == 0
    assert calls("single_tensor_optimizer", 0, "aten::_fused_adamw_") == 4


def test_sequences_have_several_lengths_or_one() -> None:
    def lengths(scale: float) -> set[int]:
        made = iter(loader("recompiles", scale))
        return {next(made)[0].shape[1] for _ in range(2 * models.LENGTHS)}

    assert len(lengths(1)) == models.LENGTHS
    assert len(lengths(0)) == 1


def test_losses_are_kept_with_their_graphs_or_without() -> None:
    def kept(scale: float) -> list[torch.Tensor]:
        work = clinic.case("retained_graph", scale=scale).workload()
        control = Control(device=torch.device("cpu"))
        for _ in range(3):
            work.step(work.model, first_batch(work.data), control)
        return work.step.history

    assert [loss.grad_fn is not None for loss in kept(1)] == [True] * 3
    assert [loss.grad_fn is not None for loss in kept(0)] == [False] * 3


def test_garbage_is_collected_every_few_steps_or_never(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(loops.gc, "collect", lambda: asked.append(1))
    trained("garbage_collection", 1, steps=2 * loops.COLLECT_EVERY)
    assert len(asked) == 2
    trained("garbage_collection", 0, steps=2 * loops.COLLECT_EVERY)
    assert len(asked) == 2


def test_weights_are_written_out_or_not() -> None:
    def written(scale: float) -> str:
        work = clinic.case("logging_every_step", scale=scale).workload()
        control = Control(device=torch.device("cpu"))
        work.step(work.model, first_batch(work.data), control)
        return work.step.line

    assert len(json.loads(written(1))) == loops.LOGGED
    assert written(0) == ""


def test_one_rank_is_late_and_the_other_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def slept(number: int, scale: float = 1) -> float:
        pauses: list[float] = []
        monkeypatch.setattr(ranks, "rank", lambda: number)
        monkeypatch.setattr(ranks.time, "sleep", pauses.append)
        work = clinic.case("straggler", scale=scale).workload()
        work.model(first_batch(work.data)[0])
        return sum(pauses)

    assert slept(1) == ranks.LATE_S
    assert slept(0) == slept(1, scale=0) == 0


def test_gradients_stay_on_their_rank_but_for_the_last_part() -> None:
    """The model tells how often it was asked not to average: for three parts of four, or never."""

    class Counting(torch.nn.Linear):
        asked = 0

        def no_sync(self) -> Any:
            self.asked += 1
            return nullcontext()

    def asked(scale: float) -> int:
        work = clinic.case("extra_syncs", scale=scale).workload()
        model = Counting(FEATURES, CLASSES)
        work.step(model, first_batch(work.data))
        return model.asked

    assert asked(1) == 0
    assert asked(0) == ranks.PARTS - 1


@pytest.mark.parametrize("case", clinic.CASES, ids=lambda case: case.name)
def test_every_workload_trains(case: clinic.Case) -> None:
    for scale in (0, 1):
        work = clinic.case(case.name, scale=scale).workload()
        batch = first_batch(work.data)
        if work.step is None:
            work.loss(work.model(*batch[:-1]), batch[-1]).backward()
        else:
            control = Control(device=torch.device("cpu"))
            work.step(work.model, batch, *([control] if work.takes_control else []))
        assert all(p.grad is not None and p.grad.isfinite().all() for p in work.model.parameters())
