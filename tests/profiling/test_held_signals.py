"""Signals that are held back for a block: none stays held, and one that insists is obeyed."""

import copy
import os
import signal
from typing import Any

import pytest

from workbench.profiling.capture import capture
from workbench.profiling.watch import describe, known_length
from workbench.workload import interrupts
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
