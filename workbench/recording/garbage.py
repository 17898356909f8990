"""Python's garbage collection: numbers in the steps of record, ranges in the trace."""

import gc
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

RANGE = "workbench.gc"
GENERATIONS = 3


class GarbageProbe:
    """Counts and times collections while ``counting``; marks them while ``marking``."""

    def __init__(self) -> None:
        self.counting = False
        self.marking = False
        self._thread = threading.get_ident()
        self._collections = [0] * GENERATIONS
        self._ns = [0] * GENERATIONS
        self._started = 0
        self._range: Any = None

    def start(self) -> None:
        """Listen to the collector."""
        gc.callbacks.append(self._collect)

    def stop(self) -> None:
        """Stop listening; doing it twice is fine."""
        with suppress(ValueError):
            gc.callbacks.remove(self._collect)

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


def _open_range() -> Any:
    from torch.autograd.profiler import record_function

    opened: Any = record_function(RANGE)
    return opened.__enter__()
