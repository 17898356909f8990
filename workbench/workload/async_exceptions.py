"""Raise an exception in the code of another thread, where that code is the user's and nowhere else.

Python lets it arrive between any two instructions of that thread, also later than it was meant: so
whoever leaves the user's code waits until what was sent has arrived. It is never taken back, which
would leave Python 3.11 waiting for it for good: the next function that is traced, in any thread,
then never returns.
"""

import ctypes
import threading
import time
from contextlib import suppress
from types import TracebackType

HELD_S = 30.0
"""What must be finished may hang: held back for longer than this, the exception is sent (own
choice)."""


class Sent(BaseException):
    """Raised in a thread by another one, past ``except Exception`` of the user's code."""


class Stages:
    """Blocks of the user's code in one thread, which other threads may break off.

    What waits in one call of C, such as ``time.sleep``, ends only when that call returns.

    Args:
        kind: What is raised.
    """

    def __init__(self, kind: type[Sent]) -> None:
        self.name: str | None = None
        """What of the user's runs now; ``None`` in our own code."""
        self._kind = kind
        self._thread = threading.get_ident()

    def bind(self) -> None:
        """The calling thread, instead of the one that made this, is the one that may be reached."""
        self._thread = threading.get_ident()

    def stage(self, name: str) -> "_Stage":
        """A block of the user's code."""
        return _Stage(self, name)

    def send(self) -> bool:
        """Raise the exception in the block that runs now; tells whether it was sent.

        User code may swallow it, so whoever means it sends it again.
        """
        with _LOCK:
            if self.name is None or is_held(self._thread):
                return False
            _UNDER_WAY.add(self._thread)
            _raise_in(self._thread, self._kind)
            return True

    def close(self) -> None:
        """The block is over; what was sent and has not arrived arrives here, and goes no further.

        For the thread of the blocks only; doing it twice is fine.
        """
        while True:
            try:
                with _LOCK:
                    self.name = None
                    _settle(self._kind)
            except Sent:  # it came before the block was marked as over
                continue
            return


class _Stage:
    __slots__ = ("_name", "_stages")

    def __init__(self, stages: Stages, name: str) -> None:
        self._stages = stages
        self._name = name

    def __enter__(self) -> None:
        self._stages.name = self._name

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stages.close()


def hold() -> None:
    """Let nothing be raised in the calling thread until :func:`release`; calls may be nested.

    What is under way arrives here and goes no further: whoever means it sends it again.
    """
    me = threading.get_ident()
    while True:
        try:
            with _LOCK:
                depth, _ = _HELD.get(me, (0, None))
                _settle(Sent)
                _HELD[me] = depth + 1, None
        except Sent:
            continue
        return


def release() -> None:
    """The end of :func:`hold`."""
    me = threading.get_ident()
    with _LOCK:
        depth, since = _HELD.pop(me, (1, None))
        if depth > 1:
            _HELD[me] = depth - 1, since


_LOCK = threading.RLock()  # a finalizer that runs inside may want it, too
_HELD: dict[int, tuple[int, float | None]] = {}
"""Threads that hold back, how deep, and since when something waits for them."""
_UNDER_WAY: set[int] = set()
"""Threads that something was sent to, and that have not made sure since that it has arrived."""


def is_held(thread: int) -> bool:
    """Whether a thread holds back what others raise in it, and has not done so for too long."""
    depth, since = _HELD.get(thread, (0, None))
    if not depth:
        return False
    since = time.monotonic() if since is None else since
    _HELD[thread] = depth, since
    return time.monotonic() - since < HELD_S


def _settle(kind: type[Sent]) -> None:
    """Let arrive what is under way to this thread; sent anew, in case that it already has."""
    me = threading.get_ident()
    if me not in _UNDER_WAY:
        return
    with suppress(Sent):
        _raise_in(me, kind)
        for _ in range(1000):  # it arrives at the end of a turn
            pass
    _UNDER_WAY.discard(me)


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))
