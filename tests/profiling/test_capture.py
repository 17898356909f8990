"""``wb.capture``: the user's own loop, recorded without being rewritten."""

import errno
import gc
import re
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import workbench as wb
from tests.profiling.loops import Slow, Trainer, endless, loader, workload
from tests.recording.traces import names, steps
from workbench.errors import ProfilerBusyError, RunError, SettingError
from workbench.profiling import Capture
from workbench.recording.window import Window
from workbench.run.facts import is_capture

pytestmark = pytest.mark.slow


def captured(batches: int, folder: str = "runs/mine", **options: Any) -> Capture:
    loop = Trainer()
    with wb.capture(folder, **options) as cap:
        for batch in cap.watch(loader(batches)):
            loop.train(batch)
            cap.step()
    return cap


def trace_of(cap: Capture) -> Path:
    assert cap.folder is not None
    return cap.folder / "rank0.trace.json.gz"


def record_of(cap: Capture) -> Any:
    assert cap.run.record is not None
    return cap.run.record


def test_a_window_follows_the_warm_up_and_measured_steps_follow_the_window() -> None:
    """Of 40 steps, 2 are warm-up, 10 profiled, the first after them is left out: 27 remain."""
    cap = captured(40)
    assert steps(trace_of(cap)) == [f"ProfilerStep#{number}" for number in range(2, 12)]
    timings = record_of(cap).timings
    assert sum(timings.blocks) == len(timings.step_ns) == len(timings.input_ns) == 27
    assert len(timings.blocks) == 2
    assert len(timings.profiled_step_ns) == 10


def test_a_long_warm_up_is_a_measured_block_too() -> None:
    """Step 0 tells the device, 1 to 7 are measured, 8 is the pilot, 9 settles the profiler."""
    timings = record_of(captured(40, warmup=10)).timings
    assert timings.blocks[0] == 7
    assert sum(timings.blocks) == 7 + 40 - 20 - 1


def test_without_watch_the_waits_are_not_measured_rather_than_zero() -> None:
    loop = Trainer()
    with wb.capture() as cap:
        for batch in loader(20):
            loop.train(batch)
            cap.step()
    record = record_of(cap)
    assert record.timings.input_ns == []
    assert any("cap.watch" in note for note in record.notes)
    assert cap.folder == Path("runs/capture")


def test_watch_changes_nothing_about_the_loader() -> None:
    class Odd:
        """Two batches, a length and an attribute."""

        shards = 3

        def __init__(self) -> None:
            self.batches = [object(), object()]

        def __len__(self) -> int:
            return 2

        def __iter__(self) -> Any:
            return iter(self.batches)

    odd = Odd()
    with wb.capture() as cap:
        watched: Any = cap.watch(odd)
        assert len(watched) == 2
        assert watched.shards == 3
        assert [a is b for a, b in zip(watched, odd.batches, strict=True)] == [True, True]


def test_watch_takes_generators_and_does_not_keep_batches_alive() -> None:
    kept: list[weakref.ref[Any]] = []
    with wb.capture() as cap:
        for number, batch in enumerate(cap.watch(endless())):
            kept.append(weakref.ref(batch[0]))
            del batch
            if number:
                assert kept[number - 1]() is None
            cap.step()
            if number == 5:
                break


def test_a_watched_loader_that_fails_raises_its_own_error() -> None:
    def broken() -> Any:
        yield torch.ones(1)
        raise OSError("disk gone")

    def run() -> None:
        with wb.capture() as cap:
            for _ in cap.watch(broken()):
                cap.step()

    with pytest.raises(OSError, match="disk gone"):
        run()


def test_waits_are_in_the_step_that_they_delay() -> None:
    """4 samples of 5 ms each: 20 ms a batch."""
    loop = Trainer()
    with wb.capture() as cap:
        for batch in cap.watch(DataLoader(Slow(100, 0.005), batch_size=4)):
            loop.train(batch)
            cap.step()
    timings = record_of(cap).timings
    assert min(timings.input_ns) >= 20e6
    assert all(w <= s for w, s in zip(timings.input_ns, timings.step_ns, strict=True))


def test_leaving_the_loop_early_keeps_the_whole_steps() -> None:
    loop = Trainer()
    with wb.capture() as cap:
        for number, batch in enumerate(cap.watch(loader(40))):
            loop.train(batch)
            if number == 7:
                break  # before its cap.step(): step 7 is not whole
            cap.step()
    assert steps(trace_of(cap)) == [f"ProfilerStep#{number}" for number in range(2, 7)]
    assert any("holds 5 complete steps of 10" in note for note in record_of(cap).notes)


def test_an_error_in_the_loop_comes_through_and_what_is_whole_is_kept() -> None:
    loop = Trainer()
    caps: list[Capture] = []

    def run() -> None:
        with wb.capture("runs/mine") as cap:
            caps.append(cap)
            for number, batch in enumerate(cap.watch(loader(40))):
                loop.train(batch)
                if number == 6:
                    raise ValueError("loss is nan")
                cap.step()

    with pytest.raises(ValueError, match="loss is nan"):
        run()
    assert len(steps(trace_of(caps[0]))) == 4
    assert any("ended with ValueError" in note for note in record_of(caps[0]).notes)
    captured(20)


def test_an_existing_folder_is_left_alone_and_the_new_one_is_said() -> None:
    first, second = captured(14), captured(14)
    assert (first.folder, second.folder) == (Path("runs/mine"), Path("runs/mine-2"))
    said = f"'mine' was there already: this Run is called 'mine-2' and lies in {second.folder}"
    assert said in second.notes
    assert said in second.run.notes
    assert repr(first) == f"<capture, Run in {first.folder}>"
    assert repr(second) == f"<capture, Run in {second.folder}>\n{said}"


def test_opening_the_first_of_two_of_one_name_says_where_the_newest_lies() -> None:
    """Whoever runs a script again and opens its folder would take the old Run for the new one."""
    first = captured(14)
    assert not any("newest" in note for note in wb.open(first.folder).notes)
    captured(14)
    third = captured(14)
    said = f"this is the first recording named 'mine'; the newest one lies in {third.folder}"
    assert said in wb.open(first.folder).notes
    assert said in " ".join(repr(wb.open(first.folder)).split())
    assert not any("newest" in note for note in wb.open(third.folder).notes)


def test_a_range_keeps_its_real_name() -> None:
    loop = Trainer()
    with wb.capture() as cap:
        for batch in cap.watch(loader(14)):
            with cap.range('my "step" ä'):
                loop.train(batch)
            cap.step()
    recorded = names(trace_of(cap), category="user_annotation")
    (label,) = [name for name in set(recorded) if record_of(cap).labels.get(name)]
    assert record_of(cap).labels[label] == 'my "step" ä'


@pytest.mark.parametrize(
    "problem",
    [OSError(errno.ENOSPC, "No space left on device"), RunError("torch could not write its trace")],
)
def test_a_recording_that_cannot_be_made_does_not_end_the_loop(
    monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    """The size of a trace is learned from a temporary file, for which there may be no room."""

    def fail(window: Window) -> int:
        raise problem

    monkeypatch.setattr(Window, "measure", fail)
    trained = 0
    with wb.capture() as cap:
        for _ in cap.watch(loader(14)):
            trained += 1
            cap.step()
    assert trained == 14
    with pytest.raises(RunError, match=r"No space left.*TMPDIR|could not write"):
        _ = cap.run


def test_steps_on_another_thread_are_refused() -> None:
    refused: list[str] = []
    with wb.capture() as cap:

        def run() -> None:
            try:
                cap.step()
            except RunError as error:
                refused.append(str(error))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert "another thread" in refused[0]


def test_a_capture_on_a_thread_of_its_own_works() -> None:
    caps: list[Capture] = []
    thread = threading.Thread(target=lambda: caps.append(captured(14)))
    thread.start()
    thread.join()
    assert len(steps(trace_of(caps[0]))) == 10


def test_leaving_it_on_another_thread_is_refused_and_it_goes_on(place: Path) -> None:
    """Torch crashes the process when its profiler is stopped where it was not started."""
    said: list[str] = []
    with wb.capture() as cap:

        def leave() -> None:
            try:
                cap.__exit__(None, None, None)
            except RunError as error:
                said.append(str(error))

        for number, batch in enumerate(cap.watch(loader(14))):
            if number == 6:
                thread = threading.Thread(target=leave)
                thread.start()
                thread.join()
            batch[0].sum()
            cap.step()
    assert "on the thread that runs the loop" in said[0]
    assert len(steps(trace_of(cap))) == 10


def test_nesting_is_refused() -> None:
    with wb.capture() as cap:
        with pytest.raises(ProfilerBusyError, match=r"wb\.capture is already running"):
            wb.profile(workload())
        for _ in range(4):
            cap.step()
        # Now it records, and is still named as what it is rather than as a profiler of torch.
        with pytest.raises(ProfilerBusyError, match=r"wb\.capture is already"), wb.capture():
            pass
    assert cap.folder is not None


def test_a_capture_is_used_once_and_steps_belong_inside() -> None:
    cap = captured(14)
    with pytest.raises(RunError, match="used once"):
        cap.__enter__()
    with pytest.raises(RunError, match="inside"):
        cap.step()


def test_the_run_is_there_only_after_the_block() -> None:
    with wb.capture() as cap:
        with pytest.raises(RunError, match="still running"):
            _ = cap.run
        for _ in range(4):
            cap.step()


@pytest.mark.parametrize("wrong", [{"warmup": 0}, {"steps": 0}, {"steps": True}, {"warmup": 1.5}])
def test_a_plan_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="whole number"):
        wb.capture(**wrong)


def test_an_argument_of_another_kind_is_refused() -> None:
    with pytest.raises(SettingError, match=r"wb\.Record\("):
        wb.capture(record={"stacks": True})  # type: ignore[arg-type]
    with pytest.raises(RunError, match="folder=5 is not a path"):
        wb.capture(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("nameless", [".", "sub/.."])
def test_a_place_without_a_name_of_its_own_holds_the_run(nameless: str, place: Path) -> None:
    (place / "sub").mkdir()
    with wb.capture(nameless) as cap:
        for batch in cap.watch(loader(14)):
            batch[0].sum()
            cap.step()
    assert cap.folder is not None
    assert cap.folder.resolve() == place / "capture"


_ENDS_INSIDE = """
import gc, torch, workbench as wb
capture = wb.capture()
capture.__enter__()
for _ in range(6):
    torch.ones(2) + 1
    capture.step()
"""


def test_a_process_that_ends_inside_a_capture_ends_without_a_word(place: Path) -> None:
    command = [sys.executable, "-c", _ENDS_INSIDE]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_profiler_of_ones_own_inside_the_window_keeps_its_events() -> None:
    loop = Trainer()
    with wb.capture() as cap:
        for number, batch in enumerate(cap.watch(loader(40))):
            if number == 5:
                cpu = [torch.profiler.ProfilerActivity.CPU]
                with torch.profiler.profile(activities=cpu) as theirs:
                    loop.train(batch)
            else:
                loop.train(batch)
            cap.step()
    assert "aten::addmm" in {event.name for event in theirs.events()}
    assert len(steps(trace_of(cap))) == 3
    assert any("profiler of your own" in note for note in record_of(cap).notes)


def test_nothing_of_the_loop_is_held_afterwards() -> None:
    loop = Trainer()
    with wb.capture() as cap:
        for batch in cap.watch(loader(14)):
            loop.train(batch)
            cap.step()
    held = weakref.ref(loop.model)
    del loop, batch
    gc.collect()
    assert held() is None


def test_what_a_captured_loop_is_told_are_torchs_own_calls(place: Path) -> None:
    """Four samples of 5 ms are a batch of 20 ms, beside a step of a millisecond or so."""
    loop, data = Trainer(), DataLoader(Slow(400, 0.005), batch_size=4)
    with wb.capture("runs/slow") as cap:
        for number, batch in enumerate(cap.watch(data)):
            loop.train(batch)
            cap.step()
            if number == 29:
                break
    assert is_capture(record_of(cap))
    found = next(each for each in cap.run.findings if each.code == "WB101")
    assert found.call is not None
    assert found.call.startswith("DataLoader(num_workers=")
    assert found.call in found.advice
    for text in (repr(cap.run), repr(cap.run.findings), html_of(cap.run)):
        assert found.call in text
        assert not re.search(r"\bworkers=\d|wb\.Settings", text), text


def html_of(run: Any) -> str:
    """As a notebook shows it."""
    text: str = run._repr_mimebundle_()["text/html"]
    return text
