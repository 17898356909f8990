"""A capture whose thread or process is not the one that ends it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from torch.autograd import profiler

import workbench as wb
from tests.profiling.loops import Trainer, loader, workload
from workbench.errors import RunError
from workbench.profiling.capture import Capture

pytestmark = pytest.mark.slow


def left_open(steps: int) -> Capture:
    """A capture whose thread ends inside its window: nobody leaves the block."""
    cap, trainer = wb.capture(warmup=2, steps=50), Trainer()

    def loop() -> None:
        cap.__enter__()
        for batch in loader(steps):
            trainer.train(batch)
            cap.step()

    thread = threading.Thread(target=loop)
    thread.start()
    thread.join()
    return cap


def test_the_end_of_its_thread_ends_the_recording_and_keeps_what_is_whole() -> None:
    cap = left_open(8)
    assert not profiler._is_profiler_enabled
    cap.__exit__(None, None, None)
    assert cap.run.steps is not None
    assert len(cap.run.steps) == 6  # 8 steps, 2 of them warm-up


def test_a_capture_whose_thread_is_over_blocks_nobody() -> None:
    cap = left_open(8)
    wb.profile(workload(), steps=2, progress=False)
    assert not cap.is_running()
    assert any("never said that it ended" in note for note in cap.run.notes)


DIES = """
from tests.profiling.test_threads_and_forks import left_open
cap = left_open(8)
print("whole")
"""


def test_a_process_that_outlives_such_a_thread_does_not_crash(place: Path) -> None:
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", DIES],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "whole\n"), ended.stderr


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_child_forked_inside_a_capture_leaves_it_to_its_parent(place: Path) -> None:
    trainer, code = Trainer(), None
    with wb.capture(warmup=2, steps=3) as cap:
        for number, batch in enumerate(cap.watch(loader(8))):
            if number == 3:
                child = os.fork()
                if child == 0:
                    os._exit(in_child(cap))
                code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            trainer.train(batch)
            cap.step()
    assert code == 0
    assert [folder.name for folder in Path("runs").iterdir()] == ["capture"]
    assert cap.run.steps is not None
    assert len(cap.run.steps) == 3


def in_child(cap: Capture) -> int:
    """The child goes through the loop's end, as one that calls ``sys.exit`` does."""
    try:
        for _ in cap.watch([1, 2]):
            with cap.range("child"):
                cap.step()
        cap.__exit__(SystemExit, SystemExit(), None)
        cap.run  # noqa: B018 - it is the refusal that is asked for
    except RunError as error:
        return 0 if "was forked inside the capture" in str(error) else 2
    return 1


FRESH = """
import os
import workbench as wb
from tests.profiling.loops import workload
before = dict(os.environ)
with wb.capture(warmup=1, steps=1) as cap:
    for _ in range(3):
        cap.step()
assert os.environ == before, set(os.environ) ^ set(before)
wb.profile(workload(), steps=2, progress=False)
assert os.environ == before, set(os.environ) ^ set(before)
"""


def test_the_first_recording_of_a_process_leaves_its_environment_alone(place: Path) -> None:
    """What torch imports for it notes the place of the compiler's cache in a variable."""
    root = Path(__file__).parents[2]
    fresh = {k: v for k, v in os.environ.items() if not k.startswith(("TORCHINDUCTOR", "TRITON"))}
    ended = subprocess.run(
        [sys.executable, "-c", FRESH],
        cwd=place,
        env=fresh | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
