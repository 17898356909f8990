"""An exception from another thread breaks off the user's code, and nothing of ours."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from workbench.workload import async_exceptions
from workbench.workload.async_exceptions import Sent, Stages
from workbench.workload.interrupts import Deferred

pytestmark = pytest.mark.slow


class Over(Sent):
    """Enough."""


def in_thread(work: Callable[[Stages], object]) -> None:
    """Run on a thread whose stages are broken off every millisecond while they are open."""
    stages, errors = Stages(Over), list[BaseException]()

    def run() -> None:
        stages.bind()
        try:
            work(stages)
        except BaseException as error:  # noqa: BLE001 - shown below
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until = time.monotonic() + 30
    while thread.is_alive() and time.monotonic() < until:
        stages.send()
        time.sleep(0.001)
    thread.join(1)
    assert not thread.is_alive()
    assert errors == []


def busy(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def test_only_what_lies_in_a_stage_is_broken_off() -> None:
    ours: list[str] = []

    def work(stages: Stages) -> None:
        for _ in range(20):
            with suppress(Over), stages.stage("theirs"):
                busy(30)
            busy(0.01)
            ours.append("done")

    in_thread(work)
    assert ours == ["done"] * 20


def test_what_must_be_finished_is_and_then_the_stage_is_broken_off() -> None:
    told: list[str] = []

    def work(stages: Stages) -> None:
        with suppress(Over), stages.stage("theirs"):
            busy(0)  # what comes first may arrive in either place
            while True:
                with suppress(Over):
                    with Deferred():
                        busy(0.1)
                        told.append("finished")
                    busy(30)
                told.append("broken off")
                break

    in_thread(work)
    assert told in (["finished", "broken off"], ["broken off"], [])


def test_putting_back_while_the_exception_rises_is_not_broken_off_again() -> None:
    told: list[str] = []

    @contextmanager
    def changed() -> Iterator[None]:
        try:
            yield
        finally:
            with Deferred(deaths=False):
                busy(0.1)
                told.append("put back")

    def work(stages: Stages) -> None:
        with suppress(Over), stages.stage("theirs"), changed():
            busy(30)

    in_thread(work)
    assert told == ["put back"]


def test_what_hangs_while_it_must_be_finished_is_left_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(async_exceptions, "HELD_S", 0.05)
    began = time.monotonic()

    def work(stages: Stages) -> None:
        with suppress(Over), stages.stage("theirs"), Deferred():
            busy(20)

    in_thread(work)
    assert time.monotonic() - began < 10


TRACED = """
import sys, threading, time
from contextlib import suppress
from workbench.workload.async_exceptions import Sent, Stages
stages = Stages(Sent)
with suppress(Sent), stages.stage("theirs"):
    threading.Thread(target=stages.send).start()
    while True:
        time.sleep(0.001)
sys.setprofile(lambda *told: None)
abs(-1), (lambda: 1)()
sys.setprofile(None)
print("goes on")
"""


def test_afterwards_python_is_able_to_trace_calls() -> None:
    """Python 3.11 hangs at the next traced call where an exception between threads is withdrawn."""
    command = [sys.executable, "-c", TRACED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "goes on\n"
