"""Loaders that fail: one clear error, results so far kept, no process left, the loader as before.

The fixture of this folder asserts after each test that no worker process is alive.
"""

import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import workbench as wb
from tests.profiling.failing import (
    NO_ROOM,
    CollatedOnce,
    Endless,
    Failing,
    Streamed,
    Unsendable,
    WithFile,
    WithLock,
    die,
    hang,
    hang_deaf,
    leave,
    raise_error,
)
from tests.profiling.loops import Trainer, loader, workload
from workbench.errors import RunError, TimeLimitError, WorkloadError
from workbench.profiling import Capture
from workbench.recording.bench import Bench

pytestmark = pytest.mark.slow


WORKER = {"batch_size": 4, "num_workers": 1}
NO_MEMORY = r"killed from outside.*fewer workers or smaller batches"
NO_SHARED_MEMORY = r"no shared memory left.*--shm-size"

DEATHS = {
    "killed": (die(signal.SIGKILL), NO_MEMORY),
    "bus error": (die(signal.SIGBUS), NO_SHARED_MEMORY),
    "crashed": (die(signal.SIGSEGV), r"died \(.*(Segmentation fault|SIGSEGV).*workers=0"),
    "left": (leave, r"died \(.*exit(ed)? (un.*)?with (exit )?code 3.*workers=0"),
}


def captured(data: Any, most: int = 40) -> tuple[Capture, BaseException | None]:
    """A short capture of a loop over this loader, and how the loop ended."""
    trainer, cap = Trainer(), wb.capture(warmup=2, steps=3)
    try:
        with cap:
            for number, batch in enumerate(cap.watch(data)):
                trainer.train(batch)
                cap.step()
                if number == most:
                    break
    except BaseException as error:  # noqa: BLE001 - interrupts as well
        assert multiprocessing.active_children() == []  # while the error is still held
        return cap, error
    return cap, None


def text_of(error: BaseException | None) -> str:
    assert error is not None
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


@pytest.mark.parametrize("how", DEATHS)
def test_a_worker_that_dies_ends_a_profile_in_one_clear_error(how: str) -> None:
    fail, words = DEATHS[how]
    mine = DataLoader(Failing(fail), **WORKER)
    before = dict(mine.__dict__)
    with pytest.raises(WorkloadError, match=words):
        wb.profile(workload(mine), steps=8, progress=False)
    assert mine.__dict__ == before
    wb.profile(workload(), steps=2, progress=False)  # and the next one works


@pytest.mark.parametrize("how", DEATHS)
def test_a_worker_that_dies_leaves_a_capture_its_run_and_a_remedy(how: str) -> None:
    fail, words = DEATHS[how]
    cap, error = captured(DataLoader(Failing(fail), **WORKER))
    assert isinstance(error, RuntimeError | OSError | EOFError)  # torch's own, whatever it was
    notes = "\n".join(getattr(error, "__notes__", ()))
    assert re.search(words, notes)
    assert cap.run.steps is not None
    assert len(cap.run.steps) == 3
    assert any("the loop ended with" in note for note in cap.run.notes)


def test_an_error_of_the_data_stays_the_users_own() -> None:
    for workers in (0, 1):
        mine = DataLoader(Failing(raise_error), batch_size=4, num_workers=workers)
        with pytest.raises(ValueError, match="sample 60 is damaged"):
            wb.profile(workload(mine), steps=8, progress=False)
        cap, error = captured(mine)
        assert "sample 60 is damaged" in text_of(error)
        assert len(cap.run.steps) == 3


@pytest.mark.slow
@pytest.mark.parametrize("fail", [hang, hang_deaf])
def test_a_worker_that_hangs_ends_with_the_time_limit(fail: Callable[[], object]) -> None:
    mine = DataLoader(Failing(fail), **WORKER)
    began = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"waiting for a batch.*If the loader hangs"):
        wb.profile(workload(mine), steps=8, time_limit_s=4, progress=False)
    assert time.monotonic() - began < 40


def test_what_was_profiled_is_kept_when_a_later_part_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, blocks = Bench.block, 0

    def block(self: Bench, count: int) -> Any:
        nonlocal blocks
        blocks += 1
        if blocks == 2:  # after the window
            (worker,) = multiprocessing.active_children()
            os.kill(worker.pid or 0, signal.SIGKILL)
        return real(self, count)

    monkeypatch.setattr(Bench, "block", block)
    work = workload(DataLoader(Failing(bool, samples=8000), **WORKER))
    before = work.model.weight.detach().clone()
    with pytest.raises(WorkloadError, match="killed from outside") as caught:
        wb.profile(work, steps=200, progress=False, name="half")
    assert "wb.open('runs/half')" in text_of(caught.value)
    assert torch.equal(work.model.weight, before)
    run = wb.open("runs/half")
    assert "broken off after its window by WorkloadError" in " ".join(run.notes)
    assert run.steps is not None
    assert run.loader is not None
    assert run.record is not None
    assert run.record.timings is not None
    assert len(run.record.timings.blocks) == 1
    assert run.findings is not None


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (RuntimeError(NO_ROOM), WorkloadError, NO_SHARED_MEMORY),
        (TypeError("cannot pickle 'module' object"), TypeError, "while its batch was handed over"),
    ],
)
def test_a_batch_that_cannot_be_handed_over_is_an_error_and_no_endless_wait(
    error: Exception, expected: type[Exception], words: str
) -> None:
    """The thread that sends would print it, drop the batch, and the loop would wait for ever."""
    mine = DataLoader(
        Failing(bool), **WORKER, collate_fn=CollatedOnce([Unsendable(error), torch.ones(1)])
    )
    with pytest.raises(expected, match=words):
        wb.profile(workload(mine), steps=8, time_limit_s=60, progress=False)
    cap, ended = captured(mine)
    assert re.search(words, text_of(ended))
    assert len(cap.run.steps) == 3


@pytest.mark.parametrize("data", [WithFile, WithLock])
@pytest.mark.filterwarnings("ignore:Got pickle error", "ignore:unclosed file")
def test_a_part_that_cannot_be_pickled_says_what_to_do(data: Callable[[], Any]) -> None:
    mine = DataLoader(data(), **WORKER, multiprocessing_context="spawn")
    words = r"cannot be pickled \(cannot pickle .*where they are first used in a worker"
    with pytest.raises(WorkloadError, match=words):
        wb.profile(workload(mine), steps=2, progress=False)
    cap, error = captured(mine)
    assert isinstance(error, TypeError)
    assert "define data set and functions at the top of a module" in text_of(error)
    with pytest.raises(RunError, match=r"the loop ended with TypeError in step 0: the loader"):
        _ = cap.run


@pytest.mark.filterwarnings("ignore:Got pickle error")
@pytest.mark.parametrize("part", ["collate_fn", "worker_init_fn"])
def test_a_lambda_does_not_travel(part: str) -> None:
    parts: dict[str, Any] = {part: lambda given: given}
    mine = DataLoader(Failing(bool), **WORKER, multiprocessing_context="forkserver", **parts)
    with pytest.raises(WorkloadError, match=r"by forkserver.*lambda.*top of a module"):
        wb.profile(workload(mine), steps=2, progress=False)
    _, error = captured(mine)
    assert "top of a module" in text_of(error)


def test_an_empty_loader_is_called_one() -> None:
    with pytest.raises(WorkloadError, match="gave no batch: it is empty"):
        wb.profile(workload(DataLoader(Failing(bool, samples=0), **WORKER)), progress=False)
    with wb.capture() as cap:
        for _ in cap.watch(DataLoader(Failing(bool, samples=3), batch_size=4, drop_last=True)):
            pass
    with pytest.raises(RunError, match=r"watched loader gave no batch: it is empty, or drop_last"):
        _ = cap.run


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_that_raises_at_its_end_keeps_a_captures_run(workers: int) -> None:
    mine = DataLoader(Streamed(raise_error), batch_size=4, num_workers=workers)
    with pytest.raises(ValueError, match="damaged"):
        wb.profile(workload(mine), steps=20, progress=False)
    cap, error = captured(mine)
    assert isinstance(error, ValueError)
    assert len(cap.run.steps) == 3


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("data", [Endless(), Streamed()])
def test_streams_without_a_length_or_an_end_are_measured(data: Any, workers: int) -> None:
    mine = DataLoader(data, batch_size=4, num_workers=workers)
    assert wb.profile(workload(mine), steps=3, progress=False).loader is not None
    cap, error = captured(mine, most=10)
    assert error is None
    assert len(cap.run.steps) == 3


def test_an_iteration_of_the_users_goes_on_where_it_was() -> None:
    """Half-way through their own persistent workers, with a profile and a capture in between."""
    mine = loader(8, num_workers=1, persistent_workers=True)
    expected = [batch[0].clone() for batch in loader_twin(mine)]
    iterator = iter(mine)
    first = [next(iterator)[0] for _ in range(3)]
    workers = multiprocessing.active_children()
    wb.profile(workload(mine), steps=3, progress=False)
    assert multiprocessing.active_children() == workers
    trainer = Trainer()
    with wb.capture(warmup=1, steps=2) as cap:
        watched = []
        for number, batch in enumerate(cap.watch(iterator)):
            watched.append(batch[0])
            trainer.train(batch)
            cap.step()
            if number == 3:
                break
    rest = [batch[0] for batch in iterator]
    seen = [*first, *watched, *rest]
    assert len(seen) == 8
    assert all(torch.equal(one, other) for one, other in zip(seen, expected, strict=True))
    assert multiprocessing.active_children() == workers
    mine._iterator._shutdown_workers()  # type: ignore[union-attr]


def loader_twin(mine: DataLoader[Any]) -> DataLoader[Any]:
    return DataLoader(mine.dataset, batch_size=mine.batch_size)


def test_an_error_does_not_end_workers_that_the_loader_keeps() -> None:
    mine = DataLoader(Failing(raise_error), **WORKER, persistent_workers=True)
    with wb.capture(warmup=2, steps=3) as cap:
        with pytest.raises(ValueError, match="damaged"):
            list(cap.watch(mine))
        cap.step()
    (worker,) = multiprocessing.active_children()
    assert mine._iterator._workers == [worker]  # type: ignore[union-attr]
    mine._iterator._shutdown_workers()  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_while_workers_start_leaves_nobody() -> None:
    for number in range(3):
        timer = threading.Timer(0.005 * number, os.kill, (os.getpid(), signal.SIGINT))
        mine = DataLoader(Failing(bool), batch_size=4, num_workers=2)
        original = mine.__class__._get_iterator

        def interrupted(self: Any, original: Any = original, timer: Any = timer) -> Any:
            timer.start()
            made = original(self)
            timer.join()
            return made

        DataLoader._get_iterator = interrupted  # type: ignore[method-assign]
        try:
            _, error = captured(mine)
        finally:
            DataLoader._get_iterator = original  # type: ignore[method-assign]
        assert isinstance(error, KeyboardInterrupt)


def test_an_interrupt_in_the_middle_of_a_capture_keeps_its_run() -> None:
    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    cap, error = captured(DataLoader(Failing(interrupt), batch_size=4))
    assert isinstance(error, KeyboardInterrupt)
    assert len(cap.run.steps) == 3


def test_a_death_while_a_run_is_written_does_not_lose_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Torch raises out of its signal handler, in whatever line the main thread is just then."""
    capture = sys.modules["workbench.profiling.capture"]
    real = capture.write_run

    def write(*arguments: Any, **named: Any) -> Path:
        for worker in multiprocessing.active_children():
            os.kill(worker.pid or 0, signal.SIGKILL)
        time.sleep(0.2)
        return real(*arguments, **named)

    monkeypatch.setattr(capture, "write_run", write)
    iterator = iter(DataLoader(Failing(bool, samples=4000), **WORKER))
    trainer, cap = Trainer(), wb.capture(warmup=2, steps=3)
    with pytest.raises(RuntimeError, match="DataLoader worker"), cap:  # noqa: PT012 - a loop
        for _ in range(8):
            trainer.train(next(iterator))
            cap.step()
    assert cap.run.steps is not None
    assert len(cap.run.steps) == 3
