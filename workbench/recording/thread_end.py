"""Do something at the end of a thread: on that thread, while what torch keeps for it is there."""

import threading
from collections.abc import Callable

_OF_THREAD = threading.local()


class _AtEnd:
    """Lives as long as its thread."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], object]] = []

    def __del__(self) -> None:
        for call in self.calls:
            call()


def at_thread_end(call: Callable[[], object]) -> None:
    """Call when this thread ends; the main thread, which ends with its process, is left alone.

    A thread's variables are let go on the thread itself. What is registered here is kept until
    then, so it should hold others by weak references only.
    """
    if threading.current_thread() is threading.main_thread():
        return
    if not hasattr(_OF_THREAD, "end"):
        _OF_THREAD.end = _AtEnd()
    _OF_THREAD.end.calls.append(call)


def forget_at_thread_end(call: Callable[[], object]) -> None:
    """Do not call it any more."""
    end = getattr(_OF_THREAD, "end", None)
    if end is not None and call in end.calls:
        end.calls.remove(call)
