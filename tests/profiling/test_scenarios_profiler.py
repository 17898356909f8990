"""Category 6 of the scenarios: the profiler used wrongly, or misbehaving.

Each test names its scenario: what people met in practice, and what they must see here.
"""

import itertools
import json
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, record_function
from torch.utils.data import DataLoader

import workbench as wb
from tests.kineto import Kineto
from tests.profiling.loops import Slow, Trainer, loader, workload
from tests.recording.traces import events, names, steps
from workbench.errors import ProfilerBusyError, RunError, TimeLimitError
from workbench.profiling import Capture, schedule
from workbench.recording import plan
from workbench.recording.window import Window

pytestmark = pytest.mark.slow


CPU = [ProfilerActivity.CPU]


def trace_of(holder: wb.Run | Capture) -> Path:
    assert holder.folder is not None
    return holder.folder / "rank0.trace.json.gz"


def test_f01_steps_never_marked_is_said_and_no_assertion_of_torch_surfaces() -> None:
    """F01: ten iterations, no step mark: torch raised 'must be initialized'."""
    loop = Trainer()
    with wb.capture(warmup=1, steps=3) as cap:
        for batch in cap.watch(loader(10)):
            loop.train(batch)
    with pytest.raises(RunError, match=r"call cap\.step\(\) at the end of every iteration"):
        _ = cap.run


def test_f01_a_plan_longer_than_the_loop_is_shortened_and_said_with_numbers() -> None:
    """F01: 5 + 8 steps planned, the loop has 8: torch's callback ran 0 times, silently."""
    loop = Trainer()
    with wb.capture(warmup=5, steps=8) as cap:
        for batch in cap.watch(loader(8)):
            loop.train(batch)
            cap.step()
    assert any("has 8 iterations" in note and "need 13" in note for note in cap.notes)
    assert steps(trace_of(cap)) == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]


def test_f01_a_loop_of_unknown_length_that_is_too_short_is_refused_with_numbers() -> None:
    """F01: one iteration can hold neither warm-up nor window."""
    with wb.capture(warmup=5, steps=8) as cap:
        for _ in cap.watch(iter([1, 2, 3])):
            cap.step()
    with pytest.raises(RunError, match=r"≥ 6 iterations .≥ 13 .*ended after 3"):
        _ = cap.run


def test_f01_a_step_cut_by_the_end_of_the_loop_is_left_out_of_the_statistics() -> None:
    """F01: torch showed 4 step ranges for 3 finished steps."""
    loop = Trainer()
    with wb.capture(warmup=1, steps=10) as cap:
        for number, batch in enumerate(itertools.cycle(loader(4))):
            loop.train(batch)
            if number == 4:
                break
            cap.step()
    assert steps(trace_of(cap)) == ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"]
    assert cap.run.trace.header["workbench"] == {"partial_step": 4}
    record = cap.run.record
    assert record is not None
    assert any("3 complete steps of 10 planned" in note for note in record.notes)


def test_f03_a_missing_device_half_is_unknown_not_idle(tmp_path: Path) -> None:
    """F03: launches were recorded, kernels were not: never '100 % idle' and never 'CPU-bound'."""
    trace = Kineto(gpu=True)
    for number in range(3):
        trace.step(number, 1000 * number, 1000)
        trace.op("aten::mm", 1000 * number + 100, 200)
        trace.runtime("cudaLaunchKernel", 1000 * number + 150, 10, correlation=number + 1)
    run = wb.open(trace.write(tmp_path / "trace.json"))
    assert "device_not_recorded" in {violation.code for violation in run.trust.violations}
    assert run.idle is None
    assert run.kernels is None


def test_f04_the_size_of_a_trace_is_predicted_and_cuts_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F04: 1.8 GB for 10 steps killed the viewer. Here one step may take all of the limit."""
    monkeypatch.setattr(plan, "TRACE_LIMIT_BYTES", 100_000)
    run = wb.profile(workload(), steps=10)
    cut = len(steps(trace_of(run)))
    assert 1 <= cut < 10
    assert any(f"cut from 10 steps to {cut}" in note for note in run.notes)

    loop = Trainer()
    with wb.capture() as cap:
        for batch in cap.watch(loader(30)):
            loop.train(batch)
            cap.step()
    assert len(steps(trace_of(cap))) < 10
    assert any("cut from 10 steps" in note for note in cap.notes)


def test_f05_a_name_that_breaks_the_file_loses_nothing(tmp_path: Path) -> None:
    """F05: a user's range named with a quote makes Kineto write an invalid file."""
    loop = Trainer()
    with wb.capture("mine") as cap:
        for batch in cap.watch(loader(30)):
            with record_function('my "best" range'):
                loop.train(batch)
            cap.step()
    with pytest.raises(json.JSONDecodeError):
        events(trace_of(cap))  # the file is as torch wrote it
    frame = cap.run.steps
    assert frame is not None
    assert len(frame) == 10
    assert "repaired_json" in {violation.code for violation in cap.run.trust.violations}


def test_f05_our_own_labels_never_break_it() -> None:
    """F05: the same name through the workbench is altered, and its real form remembered."""
    loop = Trainer()
    with wb.capture("mine") as cap:
        for batch in cap.watch(loader(30)):
            with cap.range('my "best" range'):
                loop.train(batch)
            cap.step()
    assert "my _best_ range" in names(trace_of(cap))
    record = cap.run.record
    assert record is not None
    assert record.labels == {"my _best_ range": 'my "best" range'}


def test_f07_a_whole_epoch_becomes_a_window() -> None:
    """F07: 'profile the epoch' of 2,000 steps records 20 of them and lets the rest run free."""
    run = wb.profile(workload(), steps=200)
    assert len(steps(trace_of(run))) == 20


def test_f07_a_step_that_is_a_whole_epoch_is_stopped() -> None:
    """F07: cap.step() once an epoch would record without a bound."""
    with wb.capture(warmup=1) as cap:
        for _ in range(3):
            for _ in cap.watch(itertools.repeat(1, 500)):
                torch.ones(2) + 1
            cap.step()
    with pytest.raises(RunError, match="after every batch, not after every epoch"):
        _ = cap.run


def test_f07_a_window_that_meets_an_endless_step_ends_inside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F07: the third step validates on thousands of batches without a mark."""
    monkeypatch.setattr(schedule, "TRACE_LIMIT_BYTES", 100_000)
    with wb.capture(warmup=1) as cap:
        for number in range(4):
            for _ in cap.watch(itertools.repeat(1, 20_000 if number == 2 else 1)):
                torch.ones(2) + 1
            cap.step()
    assert steps(trace_of(cap)) == ["ProfilerStep#1"]
    assert any("ended inside a step" in note for note in cap.notes)


@pytest.mark.parametrize("leave", ["error", "return"])
def test_f07_the_profiler_stops_however_the_loop_is_left(leave: str) -> None:
    """F07: a return before stop left it running; memory grew until the device was full."""

    def loop() -> None:
        with wb.capture() as cap:
            for number in range(20):
                torch.ones(2) + 1
                if number == 5 and leave == "return":
                    return
                if number == 5:
                    raise ValueError("stop here")
                cap.step()

    if leave == "return":
        loop()
    else:
        with pytest.raises(ValueError, match="stop here"):
            loop()
    assert not torch.autograd.profiler._is_profiler_enabled


def test_f09_the_window_holds_the_steps_that_were_asked_for() -> None:
    """F09: two active steps of 20 linear layers are two ranges and 40 linears, not three and 60."""
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(20)))
    run = wb.profile(wb.Workload(model, loader(8)), steps=2)
    assert len(steps(trace_of(run))) == 2
    assert names(trace_of(run)).count("aten::linear") == 40


def test_f09_kernels_belong_to_the_step_that_launched_them(tmp_path: Path) -> None:
    """F09: ten kernels launched before the window run inside it; every step still counts four."""
    trace = Kineto(gpu=True)
    for early in range(10):
        trace.kernel("early", 100 + 10 * early, 5, correlation=900 + early)
    for number in range(2):
        trace.step(number, 100 + 300 * number, 300)
        for at in range(4):
            start = 100 + 300 * number + 20 + 10 * at
            trace.launched(
                "mine",
                call=(start, 2),
                kernel=(start + 150, 5),
                correlation=10 * number + at + 1,
            )
    run = wb.open(trace.write(tmp_path / "trace.json"))
    launched = run.ranks[0].launches
    found = run.ranks[0].steps
    assert found is not None
    mine = launched.launch[launched.launch >= 0]
    step_of = found.step_of(run.trace.events.ts[mine])
    assert [int((step_of == step).sum()) for step in (0, 1)] == [4, 4]


@pytest.mark.parametrize("workers", [0, 2])
def test_f10_loader_time_is_never_zero(workers: int) -> None:
    """F10: 20 ms a sample, batch 4, so a batch costs 80 ms of work.

    Alone the loop waits 80 ms for each; two workers halve that on average, start-up included.
    """
    data = DataLoader(Slow(6 * 4, 0.02), batch_size=4, num_workers=workers)
    with wb.capture(warmup=1, steps=5) as cap:
        for _ in cap.watch(data):
            cap.step()
    waits = cap.run.input
    assert waits is not None
    assert waits["wait_ns"].sum() > 5 * 80e6 / max(workers, 1) * 0.5
    if not workers:
        assert waits["wait_ns"].min() > 70e6


def test_f10_the_call_that_ends_the_loop_is_no_batch() -> None:
    """F10: torch counts 7 calls for 6 batches; means per batch must divide by 6."""
    loop = Trainer()
    with wb.capture(warmup=1, steps=9) as cap:
        for _ in range(2):
            for batch in cap.watch(loader(6)):
                loop.train(batch)
                cap.step()
    wait = cap.run.ranks[0].input_wait
    assert wait is not None
    assert wait.batches == len(steps(trace_of(cap)))


def test_f11_a_profiler_of_the_users_is_refused_never_emptied() -> None:
    """F11: a profiler inside another left the outer one with 0 events, silently."""
    with torch.profiler.profile(activities=CPU) as theirs:
        torch.ones(2) + 1
        with pytest.raises(ProfilerBusyError, match=r"Stop it first.*wb\.open"):
            wb.profile(workload(), steps=2)
        with pytest.raises(ProfilerBusyError), wb.capture():
            pass
        torch.ones(2) + 1
    assert [event.name for event in theirs.events()].count("aten::add") == 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="a machine with the device cannot lack it")
def test_f11_a_device_that_is_not_there_is_no_assertion(tmp_path: Path) -> None:
    """F11: a device-only request on a CPU machine was an AssertionError of torch."""
    window = Window(wb.Record(), "cuda")
    window.prepare()
    window.start()
    torch.ones(2) + 1
    window.stop()
    window.export(tmp_path / "t.json.gz")
    assert "aten::add" in names(tmp_path / "t.json.gz")


def test_f11_after_a_failed_run_the_next_works() -> None:
    """F11: errors in the body and time limits leave the next session intact."""

    def fail(model: nn.Module, batch: Any) -> None:
        raise ValueError("no")

    def hang(model: nn.Module, batch: Any) -> None:
        time.sleep(60)

    with pytest.raises(ValueError, match="no"):
        wb.profile(workload(step=fail), steps=2)
    with pytest.raises(TimeLimitError):
        wb.profile(workload(step=hang), steps=2, time_limit_s=0.2)
    assert len(steps(trace_of(wb.profile(workload(), steps=2)))) == 2


def test_f11_warnings_as_errors_neither_fail_nor_kill() -> None:
    """With a schedule torch's step() warns, and as an error that crashes the process at exit."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            wb.profile(workload(), steps=2, record=wb.Record(stacks=True, memory=True))
