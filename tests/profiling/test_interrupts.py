"""U09: an interrupt at any moment leaves nothing running, changed or half-written."""

import contextlib
import gc
import multiprocessing
import os
import random
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.autograd import profiler

import workbench as wb
from tests.profiling.loops import loader, workload

pytestmark = pytest.mark.slow


def state(work: wb.Workload) -> dict[str, Any]:
    return {
        "processes": multiprocessing.active_children(),
        "signals": [signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)],
        "torch": [profiler._prepare_profiler, profiler._run_on_profiler_start],
        "recording": profiler._is_profiler_enabled,
        "warnings": warnings.showwarning,
        "gc": list(gc.callbacks),
        "weights": work.model.weight.detach().clone().tolist(),
        "random": torch.get_rng_state().tolist(),
        "training": work.model.training,
        "ours": [t.name for t in threading.enumerate() if t.name.startswith("workbench")],
    }


# Python swallows an interrupt that arrives inside a finalizer, and reports it; we then raise it at
# the next stage.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ten_interrupts_leave_everything_as_it_was_and_the_next_run_works(place: Path) -> None:
    """Moments are drawn over the whole run: start, loader, window, restoring, writing."""
    work = workload(loader(8, num_workers=1))
    wb.profile(work, steps=5, folder="whole")
    began = time.monotonic()
    wb.profile(work, steps=5, folder="whole")
    usual = time.monotonic() - began
    before, moments, hit = state(work), random.Random(7), 0
    for _ in range(10):
        timer = threading.Timer(moments.uniform(0, usual), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            wb.profile(work, steps=5, folder="cut")
            timer.join()
            time.sleep(0.01)
        except KeyboardInterrupt:
            hit += 1
        with contextlib.suppress(KeyboardInterrupt):
            timer.join()
        assert state(work) == before
    assert hit > 0
    assert all((folder / "run.json").is_file() for folder in Path("cut").glob("*"))
    wb.profile(work, steps=5)


def test_an_interrupted_capture_keeps_its_whole_steps_and_lets_go(place: Path) -> None:
    def run() -> None:
        with wb.capture("runs/mine") as cap:
            for number in range(40):
                torch.ones(2) + 1
                if number == 6:
                    signal.raise_signal(signal.SIGINT)
                cap.step()

    with pytest.raises(KeyboardInterrupt):
        run()
    assert Path("runs/mine/run.json").is_file()
    wb.profile(workload(), steps=2)


def test_an_interrupt_while_a_capture_begins_blocks_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is held, as a notebook does with its last traceback; the next run must not care."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("workbench.profiling.active.LoadProbe", interrupted)
        with pytest.raises(KeyboardInterrupt) as held, wb.capture():
            pass
    wb.profile(workload(), steps=2)
    assert held.value is not None
