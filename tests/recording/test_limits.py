"""A time limit and an interrupt reach the user's code, and nothing of ours."""

import os
import signal
import threading
import time
from contextlib import suppress

import pytest

from workbench.errors import TimeLimitError
from workbench.recording.limits import LOADING, Limits

pytestmark = pytest.mark.slow


def sleep_in_stage(limits: Limits, stage: str = LOADING) -> None:
    with limits.stage(stage):
        time.sleep(30)


def test_a_sleep_is_cancelled_and_the_stage_is_named() -> None:
    began = time.monotonic()
    with (
        pytest.raises(TimeLimitError, match=r"time_limit_s=0\.1 .* waiting for a batch"),
        Limits(0.1, "wb.profile") as limits,
    ):
        sleep_in_stage(limits)
    assert time.monotonic() - began < 5


def test_code_that_swallows_exceptions_is_cancelled() -> None:
    def stubborn(limits: Limits) -> None:
        with limits.stage("running a training step"):
            while True:
                with suppress(Exception):
                    time.sleep(0.01)

    with pytest.raises(TimeLimitError), Limits(0.1, "wb.profile") as limits:
        stubborn(limits)


def test_our_own_code_is_not_cut_and_the_next_stage_is() -> None:
    reached = []

    def ours_then_theirs(limits: Limits) -> None:
        time.sleep(0.3)
        reached.append("end of our own code")
        sleep_in_stage(limits)

    with pytest.raises(TimeLimitError), Limits(0.05, "wb.profile") as limits:
        ours_then_theirs(limits)
    assert reached == ["end of our own code"]


def test_a_thread_that_is_not_the_main_one_is_cancelled_too() -> None:
    found: list[str] = []

    def run() -> None:
        try:
            with Limits(0.1, "wb.profile") as limits, limits.stage("running a training step"):
                while True:
                    time.sleep(0.01)
        except TimeLimitError as error:
            found.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    assert "running a training step" in found[0]


def test_an_interrupt_in_a_stage_is_immediate() -> None:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt), Limits(None, "wb.profile") as limits:
        sleep_in_stage(limits)


def test_an_interrupt_in_our_own_code_waits_for_its_end() -> None:
    done = []

    def clean_up() -> None:
        with Limits(None, "wb.profile"):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            done.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        clean_up()
    assert done == ["cleaned up"]


def test_handlers_and_threads_are_as_before() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)
    threads = threading.active_count()
    with Limits(60, "wb.profile"):
        pass
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)) == before
    assert threading.active_count() == threads


def test_an_alarm_of_somebody_else_still_reaches_them() -> None:
    rang: list[int] = []
    previous = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(number))
    try:
        with Limits(60, "wb.profile") as limits, limits.stage("running a training step"):
            signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert rang == [signal.SIGALRM]


@pytest.mark.parametrize("main", [True, False])
def test_what_restores_things_after_a_late_stage_is_not_cut(*, main: bool) -> None:
    """The time was over before the stage: it is refused, and cleaning up takes 1.5 s unharmed."""
    reached: list[str] = []

    def measured() -> None:
        with Limits(0.05, "wb.profile") as limits:
            time.sleep(0.2)
            try:
                sleep_in_stage(limits)
            finally:
                until = time.monotonic() + 1.5
                while time.monotonic() < until:
                    time.sleep(0.01)
                reached.append("everything was put back")

    def late() -> None:
        with pytest.raises(TimeLimitError):
            measured()

    if main:
        late()
    else:
        thread = threading.Thread(target=late)
        thread.start()
        thread.join(20)
    assert reached == ["everything was put back"]
