"""Python's garbage collection: numbers in the steps of record, ranges in the trace."""

import gc
import signal
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

RANGE = "workbench.gc"
GENERATIONS = 3
_SOON_S = 0.001


class GarbageProbe:
    """Counts and times collections while ``counting``; marks them while ``marking``.

    A signal that comes while Python collects reaches its handler in the first line of Python after
    that, which is that of a callback here, and Python drops what is raised there: an interrupt, or
    torch's word that a worker died. Such a signal is sent once more.
    """

    def __init__(self) -> None:
        self.counting = False
        self.marking = False
        self._thread = threading.get_ident()
        self._collections = [0] * GENERATIONS
        self._ns = [0] * GENERATIONS
        self._started = 0
        self._range: Any = None
        self._hook: Any = None

    def start(self) -> None:
        """Listen to the collector."""
        self._hook, sys.unraisablehook = sys.unraisablehook, self._dropped
        gc.callbacks.append(self._collect)

    def stop(self) -> None:
        """Stop listening; doing it twice is fine."""
        with suppress(ValueError):
            gc.callbacks.remove(self._collect)
        if sys.unraisablehook == self._dropped:
            sys.unraisablehook = self._hook

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def to_json(self) -> dict[str, Any]:
        """Collections and nanoseconds of each generation, youngest first."""
        return {"collections": list(self._collections), "ns": list(self._ns)}

    def _collect(self, phase: str, info: dict[str, int]) -> None:
        if sys.is_finalizing():
            return
        if phase == "start":
            if self.marking and threading.get_ident() == self._thread:
                self._range = _open_range()
            self._started = time.perf_counter_ns()
            return
        ended = time.perf_counter_ns()
        if self._range is not None:
            self._range.__exit__(None, None, None)
            self._range = None
        if self.counting and self._started:
            generation = min(info["generation"], GENERATIONS - 1)
            self._collections[generation] += 1
            self._ns[generation] += ended - self._started

    def _dropped(self, told: Any) -> None:
        """Python drops an exception: where it is a signal's and came in a collection, again."""
        collecting = any(told.object == callback for callback in gc.callbacks)
        number = _signal_of(told.exc_value) if collecting else None
        if number is not None:
            threading.Thread(target=_send, args=(number,), name="workbench-again").start()
        if number is None or (number != signal.SIGINT and told.object != self._collect):
            self._hook(told)


def _signal_of(error: BaseException) -> int | None:
    """The signal whose handler raised it; ``None`` for what went wrong in these lines."""
    if isinstance(error, KeyboardInterrupt):
        return signal.SIGINT
    from_handler = error.__traceback__ is not None and error.__traceback__.tb_next is not None
    return getattr(signal, "SIGCHLD", None) if from_handler else None


def _send(number: int) -> None:
    time.sleep(_SOON_S)  # the callback is over by then
    with suppress(ValueError, OSError):
        signal.pthread_kill(threading.main_thread().ident or 0, number)


def _open_range() -> Any:
    from torch.autograd.profiler import record_function

    opened: Any = record_function(RANGE)
    return opened.__enter__()
