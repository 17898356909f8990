"""Signals that are held back for a block: none stays held, and one that insists is obeyed."""

import copy
import os
import signal
from typing import Any

import pytest

from workbench.errors import TimeLimitError
from workbench.profiling.capture import capture
from workbench.profiling.watch import describe, known_length
from workbench.recording.limits import Limits
from workbench.workload import async_exceptions, interrupts
from workbench.workload.interrupts import Deferred


def send() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def held(times: int, done: list[bool]) -> None:
    """A block in which so many interrupts come."""
    with Deferred():
        for _ in range(times):
            send()
        done.append(True)


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    done: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        held(2, done)
    assert done == [True]


def test_the_third_interrupt_leaves_a_block_that_hangs() -> None:
    done: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        held(3, done)
    assert done == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_while_signals_are_let_go_leaves_none_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of_a_worker(number: int, frame: Any) -> None: ...

    before = signal.signal(signal.SIGCHLD, of_a_worker)
    real = interrupts._Held.let_go

    def let_go(held: Any) -> None:
        real(held)
        if held._number == signal.SIGINT:
            raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt), Deferred():
            monkeypatch.setattr(interrupts._Held, "let_go", let_go)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.getsignal(signal.SIGCHLD) is of_a_worker
    finally:
        signal.signal(signal.SIGCHLD, before)


def limited(beyond_s: float, done: list[bool]) -> None:
    """A stage that must finish something, beyond its time limit."""
    with Limits(0.05, "the test") as limits, limits.stage("waiting for a batch"):
        with Deferred():
            limits._ended.wait(beyond_s)  # an alarm does not end it, as it would end a sleep
            done.append(True)
        limits._ended.wait(60)


def test_a_time_limit_waits_for_the_end_of_the_block() -> None:
    """Raised while a worker is forked it would be lost, with a word on the terminal."""
    done: list[bool] = []
    with pytest.raises(TimeLimitError, match="waiting for a batch"):
        limited(0.5, done)
    assert done == [True]


def test_a_time_limit_leaves_a_block_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_exceptions, "HELD_S", 0.5)
    done: list[bool] = []
    with pytest.raises(TimeLimitError):
        limited(60, done)
    assert done == []


def test_an_interrupt_while_a_block_begins_leaves_nothing_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(number: int, previous: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupts, "_Held", interrupted)
    with pytest.raises(KeyboardInterrupt), Deferred():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert async_exceptions._HELD == {}


class Strange:
    """A loader whose answers about itself fail."""

    def __len__(self) -> int:
        raise RuntimeError("not connected")

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


def test_a_loader_that_cannot_speak_of_itself_is_not_in_the_way() -> None:
    assert known_length(Strange()) is None
    assert describe(Strange()) == {}


def test_a_watched_loader_can_be_copied() -> None:
    watched = capture("unused").watch([1, 2])
    assert len(copy.copy(watched)) == 2
