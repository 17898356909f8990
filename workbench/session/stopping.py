"""Break off the user's code in the thread that trains, from another thread."""

import ctypes
import threading
from types import TracebackType

LOADING = "waiting for a batch"
TRAINING = "running a training step"
COMPARING = "comparing settings"


class Ended(BaseException):
    """Raised inside the user's code, past its ``except Exception``, when a session must end."""


class Breaker:
    """Lets other threads end a stage of the user's code; our own code is never broken off.

    What waits in one call of C, such as ``time.sleep``, ends only when that call returns.
    """

    def __init__(self) -> None:
        self.stage_name: str | None = None
        """What of the user's runs now; ``None`` in our own code."""
        self._thread: int | None = None
        self._lock = threading.Lock()
        self._sent = False

    def bind(self) -> None:
        """The calling thread is the one that may be broken off."""
        self._thread = threading.get_ident()
        self._sent = False

    def stage(self, name: str) -> "_Stage":
        """A block of the user's code."""
        return _Stage(self, name)

    def break_off(self) -> None:
        """Raise :class:`Ended` in the stage that runs now, if one does."""
        with self._lock:
            if self.stage_name is not None and self._thread is not None:
                self._sent = True
                _raise_in(self._thread, Ended)

    def leave(self) -> None:
        """The stage is over; what was sent and has not arrived arrives here, and goes no further.

        To take it back (an exception of ``None``) would leave Python 3.11 waiting for it
        for good: the first profile function that is set then never returns.
        """
        with self._lock:
            self.stage_name = None
            if self._sent:
                self._sent = False
                _swallow()


class _Stage:
    __slots__ = ("_breaker", "_name")

    def __init__(self, breaker: Breaker, name: str) -> None:
        self._breaker = breaker
        self._name = name

    def __enter__(self) -> None:
        self._breaker.stage_name = self._name

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._breaker.leave()


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


def _swallow() -> None:
    """Let what is pending in this thread arrive; sent anew, in case that it already has."""
    try:
        _raise_in(threading.get_ident(), Ended)
        for _ in range(1000):  # it arrives at the end of a turn
            pass
    except Ended:
        pass
