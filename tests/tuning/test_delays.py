"""Which part of a step did the machine spend on other programs?"""

import subprocess
import sys
import time

import pytest

from tests.tuning.made import block
from workbench.tuning.delays import DelayProbe
from workbench.tuning.trial import LEAST_LEFT


def busy(seconds: float) -> None:
    """Use so much processor time of this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_what_a_busy_loop_takes_beyond_its_processor_time_is_its_waits():
    """Wall time of a thread that never sleeps = running + waiting for a processor, whoever held it.

    A busy machine may pause it between two clocks, so one of three tries must agree.
    """
    apart = []
    for _ in range(3):
        with DelayProbe(on=True) as probe:
            probe.step()
            began, used = time.perf_counter(), time.thread_time()
            for _ in range(5):
                busy(0.05)
                probe.step()
            wall, used = time.perf_counter() - began, time.thread_time() - used
            delays = probe.delays_ns()
        assert len(delays) == 5
        apart.append(sum(delays) / 1e9 - (wall - used))
        if abs(apart[-1]) < 0.02:
            return
    raise AssertionError(apart)


def test_a_sleep_is_no_wait_for_a_processor():
    """However late it may go on: what is left of the wall beside the sleep, at most."""
    with DelayProbe(on=True) as probe:
        began = time.monotonic()
        probe.step()
        time.sleep(0.2)
        probe.step()
        rest = time.monotonic() - began - 0.2
        assert probe.delays_ns()[0] <= rest * 1e9


def test_nothing_is_told_where_a_device_works():
    with DelayProbe(on=False) as probe:
        probe.step()
        probe.step()
        assert probe.delays_ns() is None


def test_waits_that_our_own_processes_cause_stay_in_the_step():
    # Others used as much as a child of ours: half of the wait is theirs.
    probe = DelayProbe(on=True)
    with probe:
        work = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
        with subprocess.Popen([sys.executable, "-c", work]):
            pass
        assert probe.others_share(0.4) == pytest.approx(0.5, abs=0.15)
        assert probe.others_share(0.0) == 0.0
        assert probe.others_share(None) is None


def test_undisturbed_steps_are_the_steps_without_others_share_of_the_waits():
    waited = block([100, 60, 50], delay_ns=(50_000_000, 20_000_000, 0), delay_share=0.5)
    assert waited.undisturbed_ns == (75e6, 50e6, 50e6)
    assert block([100]).undisturbed_ns is None
    over = block([100], delay_ns=(120_000_000,), delay_share=1.0)
    assert over.undisturbed_ns == (LEAST_LEFT * 100e6,)
