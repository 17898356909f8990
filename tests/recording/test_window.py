"""The profiled window: whole steps, one export, and never two profilers at once."""

import cProfile
import gc
import gzip
import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
import torch
from torch.autograd import profiler as autograd_profiler
from torch.profiler import ProfilerActivity, profile, record_function

from tests.recording.traces import names, steps
from workbench.errors import ProfilerBusyError, RunError
from workbench.recording.labels import Labels
from workbench.recording.window import State, Window
from workbench.settings import Record

pytestmark = pytest.mark.slow


CPU = [ProfilerActivity.CPU]


def opened(**record: bool) -> Window:
    window = Window(Record(**record), None)
    window.prepare()
    window.start()
    return window


def work() -> None:
    torch.ones(2) + 1


def test_every_step_has_its_range_and_its_operators(tmp_path: Path) -> None:
    window = opened()
    for number in range(7, 10):
        window.begin_step(number)
        work()
        window.end_step()
    window.stop()
    window.export(tmp_path / "t.json.gz")
    assert steps(tmp_path / "t.json.gz") == ["ProfilerStep#7", "ProfilerStep#8", "ProfilerStep#9"]
    assert names(tmp_path / "t.json.gz").count("aten::add") == 3


def test_a_step_that_is_still_open_is_told_from_whole_ones(tmp_path: Path) -> None:
    window = opened()
    window.begin_step(0)
    work()
    window.end_step()
    window.begin_step(1)
    work()
    window.stop()
    window.export(tmp_path / "t.json.gz")
    assert steps(tmp_path / "t.json.gz") == ["ProfilerStep#0"]


def test_the_trace_names_no_folder_of_the_user(tmp_path: Path) -> None:
    window = opened()
    window.stop()
    window.export(tmp_path / "t.json.gz")
    with gzip.open(tmp_path / "t.json.gz") as file:
        assert str(tmp_path) not in json.load(file)["traceName"]


def test_stop_may_be_repeated_and_export_may_not(tmp_path: Path) -> None:
    window = opened()
    window.stop()
    window.stop()
    window.export(tmp_path / "t.json.gz")
    with pytest.raises(RunError, match="no recording"):
        window.export(tmp_path / "t.json.gz")


def test_recording_is_quiet_also_when_warnings_are_errors(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            window = opened(memory=True, stacks=True, modules=True)
            work()
            window.stop()
            window.export(tmp_path / "t.json.gz")
    assert capfd.readouterr() == ("", "")


def test_a_profiler_that_starts_inside_ours_takes_over_and_both_keep_their_events(
    tmp_path: Path,
) -> None:
    window = opened()
    window.begin_step(0)
    work()
    window.end_step()
    window.begin_step(1)
    with profile(activities=CPU) as theirs:
        work()
    window.end_step()
    window.stop()
    assert window.gave_way
    assert [e.name for e in theirs.events()].count("aten::add") == 1
    window.export(tmp_path / "t.json.gz")
    assert steps(tmp_path / "t.json.gz") == ["ProfilerStep#0"]


def test_a_profiler_that_starts_while_ours_settles_takes_over() -> None:
    window = Window(Record(), None)
    window.prepare()
    with profile(activities=CPU) as theirs:
        work()
    window.start()
    window.stop()
    assert window.gave_way
    assert [e.name for e in theirs.events()].count("aten::add") == 1


def test_a_profiler_in_another_thread_is_refused_because_it_would_crash_torch(
    tmp_path: Path,
) -> None:
    window, refused = opened(), []

    def other() -> None:
        try:
            with profile(activities=CPU):
                work()
        except ProfilerBusyError as error:
            refused.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    work()
    window.stop()
    window.export(tmp_path / "t.json.gz")
    assert len(refused) == 1
    assert names(tmp_path / "t.json.gz").count("aten::add") == 1


def test_torch_is_left_as_it_was() -> None:
    before = autograd_profiler._prepare_profiler, autograd_profiler._run_on_profiler_start
    window = opened()
    window.stop()
    assert (
        autograd_profiler._prepare_profiler,
        autograd_profiler._run_on_profiler_start,
    ) == before
    assert not autograd_profiler._is_profiler_enabled


def test_a_forgotten_window_stops_recording() -> None:
    opened()
    gc.collect()
    assert not autograd_profiler._is_profiler_enabled


def test_labels_survive_the_trace_and_are_known_by_their_real_names(tmp_path: Path) -> None:
    """Unsafe ones would break the file (a quote) or come back as ``unknown`` (non-ASCII)."""
    real = ['a"b', "back\\slash", "line\nbreak", "tab\there", "Größe", "[brackets]", "plain", "a_b"]
    labels = Labels()
    window = opened()
    for name in real:
        with record_function(labels.safe(name)):
            work()
    window.stop()
    window.export(tmp_path / "t.json.gz")
    recorded = names(tmp_path / "t.json.gz", category="user_annotation")
    assert [labels.real.get(name, name) for name in recorded] == real


def test_the_process_survives_its_end_with_a_window_still_open() -> None:
    script = (
        "import warnings; warnings.simplefilter('error')\n"
        "import torch\n"
        "from workbench.recording.window import Window\n"
        "from workbench.settings import Record\n"
        "w = Window(Record(), None); w.prepare(); w.start(); torch.ones(2) + 1"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_a_window_has_one_life() -> None:
    window = opened()
    window.stop()
    assert window.state is State.STOPPED
    window.start()
    assert window.state is State.STOPPED


@pytest.mark.parametrize("kind", ["function", "cProfile"])
def test_a_profile_function_of_the_users_is_set_again_after_stacks_were_recorded(
    kind: str,
) -> None:
    """Torch takes its place to see Python's calls, and leaves it empty."""
    profiler = cProfile.Profile()
    if kind == "cProfile":
        profiler.enable()
    else:
        sys.setprofile(lambda frame, event, argument: None)
    mine = sys.getprofile()
    window = opened(stacks=True)
    work()
    window.stop()
    found = sys.getprofile()
    profiler.disable()
    sys.setprofile(None)
    assert mine is not None
    assert found is mine


def test_a_forked_child_leaves_its_parents_recording_alone(tmp_path: Path) -> None:
    """Kineto's threads are not in the child: stopping it there hangs or crashes."""
    window = opened()
    work()
    child = os.fork()
    if child == 0:
        window.stop()
        os._exit(0 if window.state is State.STOPPED else 1)
    assert os.waitpid(child, 0)[1] == 0
    window.stop()
    window.export(tmp_path / "t.json.gz")
    assert "aten::add" in names(tmp_path / "t.json.gz")


def test_a_range_that_is_open_when_recording_stops_ends_there(tmp_path: Path) -> None:
    """It must not end in the next recording: torch's code crashed there now and then."""
    first = opened()
    with first.range("rest"):
        work()
        first.stop()
        first.set_aside()
        second = opened()
        work()
    with second.range("other"):
        work()
    second.stop()
    second.set_aside()
    kept = {}
    for name, window in (("first", first), ("second", second)):
        window.export(tmp_path / f"{name}.json.gz")
        with gzip.open(tmp_path / f"{name}.json.gz") as file:
            events = json.load(file)["traceEvents"]
        kept[name] = [
            each for each in events if each["name"] in ("rest", "other") and each["ph"] == "X"
        ]
    assert [each["name"] for each in kept["first"]] == ["rest"]
    assert kept["first"][0]["args"].get("finished") is not False
    assert [each["name"] for each in kept["second"]] == ["other"]
