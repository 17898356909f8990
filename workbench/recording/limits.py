"""Time limit and interrupt for a measurement that must always clean up behind itself.

Both take effect only inside a ``stage``, which is where the user's code runs. What arrives while
our own code restores things waits for the next stage, or for the end.
"""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from workbench.errors import TimeLimitError
from workbench.workload.async_exceptions import Sent, Stages, is_held

_AGAIN_S = 1.0
"""How often a hung stage is interrupted anew: user code may swallow the first attempt."""
_GIVE_UP = 3
"""The third interrupt in a row is obeyed at once, also while we clean up."""


class _TimeUp(Sent):
    """Raised inside the user's code when the time is over."""


class Limits:
    """Guards one measurement; only the thread that made it is interrupted.

    Args:
        seconds: Time limit of the whole measurement; ``None`` sets none.
        what: Who is limited, as the user wrote it, such as ``wb.profile``.
    """

    def __init__(self, seconds: float | None, what: str) -> None:
        self._seconds = seconds
        self._what = what
        self._thread = threading.get_ident()
        self._is_main = threading.current_thread() is threading.main_thread()
        self._stage = "starting"
        self._open = False
        self._code = Stages(_TimeUp)
        self._late = False
        self._interrupts = 0
        self._ended = threading.Event()
        self._watcher = threading.Thread(
            target=self._watch, name="workbench-time-limit", daemon=True
        )
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if self._is_main:
            self._install(signal.SIGINT, self._on_interrupt)
            if hasattr(signal, "SIGALRM"):
                self._install(signal.SIGALRM, self._on_alarm)
        if self._seconds is not None:
            self._watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._watcher.is_alive():
            self._watcher.join(_AGAIN_S)
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        if isinstance(error, _TimeUp):
            raise TimeLimitError(self._message()) from None
        if self._interrupts and error is None:
            raise KeyboardInterrupt

    def stage(self, name: str) -> "_Stage":
        """A block of the user's code, named for messages, that may be interrupted."""
        return _Stage(self, name)

    def _install(self, number: int, handler: Any) -> None:
        previous = signal.getsignal(number)
        if previous is not None:
            self._previous[number] = previous
            signal.signal(number, handler)

    def _enter(self, name: str) -> None:
        self._stage = name
        try:
            self._open = True
            self._obey()
        except BaseException:  # nobody leaves a stage that was not entered
            self._open = False
            raise
        if not self._is_main:
            self._code.name = name

    def _obey(self) -> None:
        """Raise what has waited for a stage."""
        if self._late:
            raise _TimeUp
        if self._interrupts:
            raise KeyboardInterrupt

    def _reaches(self, frame: FrameType | None) -> bool:
        """Whether the user's code was interrupted, and not the end of a stage."""
        return self._open and (frame is None or frame.f_code is not _LEAVING)

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        reaches = self._reaches(frame)
        if self._late and reaches:
            raise _TimeUp
        self._interrupts += 1
        if reaches or self._interrupts >= _GIVE_UP:
            previous = self._previous[signal.SIGINT]
            if callable(previous):
                previous(number, frame)

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        if self._late:
            if self._reaches(frame) and not is_held(self._thread):
                raise _TimeUp
            return  # it is sent again
        previous = self._previous[signal.SIGALRM]
        if callable(previous):
            previous(number, frame)

    def _watch(self) -> None:
        if self._ended.wait(min(self._seconds or 0.0, threading.TIMEOUT_MAX)):
            return
        self._late = True
        while not self._ended.is_set():
            if self._open:
                self._poke()
            self._ended.wait(_AGAIN_S)

    def _poke(self) -> None:
        if not self._is_main:
            self._code.send()
        elif hasattr(signal, "SIGALRM"):
            signal.pthread_kill(self._thread, signal.SIGALRM)  # also wakes a sleep or a lock
        else:
            signal.raise_signal(signal.SIGINT)

    def _message(self) -> str:
        return (
            f"{self._what} took longer than time_limit_s={self._seconds:g} and was cancelled while "
            f"{self._stage}; everything is as it was before. "
            + _REMEDIES.get(self._stage, "Raise time_limit_s, or ask for fewer steps.")
        )


LOADING = "waiting for a batch"
TRAINING = "running a training step"
_REMEDIES = {
    LOADING: (
        "If the loader hangs, load one batch by hand with workers=0 to see why; "
        "if it is only slow, raise time_limit_s or ask for fewer steps."
    ),
    TRAINING: (
        "If the step hangs, call it by hand on one batch to see where; "
        "if it is only slow, raise time_limit_s, ask for fewer steps or use a smaller batch."
    ),
}


class _Stage:
    """Opens the guard for one block of user code."""

    __slots__ = ("_limits", "_name")

    def __init__(self, limits: Limits, name: str) -> None:
        self._limits = limits
        self._name = name

    def __enter__(self) -> None:
        self._limits._enter(self._name)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._limits._open = False
        if not self._limits._is_main:
            self._limits._code.close()


_LEAVING = _Stage.__exit__.__code__
