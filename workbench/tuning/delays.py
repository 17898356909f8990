"""How long a step waited for a processor that other programs held.

Linux counts, for every thread, the time in which it could have run and did not get a processor
(``run_delay`` in ``/proc/self/task/ID/schedstat``). On a busy machine that is most of the noise of
a step, and no property of the step: without it a change of a tenth can be told where whole step
times differ by half from one second to the next.

Not all of it is other programs': loader workers and threads of our own also take processors from
the training thread, and that is a cost of the setting. So of the wait only the share counts that
others had of the processor time which the training thread did not have itself.
"""

import itertools
import os
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from workbench.recording.load import own_cpu_s


class DelayProbe:
    """Reads, step by step, how long this thread has waited for a processor so far.

    Args:
        on: Whether the work of a step is done when its call returns. Where a device works, the
            host's wait may lie behind the device's work and cost nothing.
    """

    def __init__(self, *, on: bool) -> None:
        self._file: int | None = None
        if on:
            with suppress(OSError):
                place = f"/proc/self/task/{threading.get_native_id()}/schedstat"
                self._file = os.open(place, os.O_RDONLY)
        self._so_far: list[int] = []
        self._own = _own_beside_this_thread_s()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def step(self) -> None:
        """Before the first step and after each."""
        if self._file is None:
            return
        try:
            ran, waited, _ = os.pread(self._file, 64, 0).split()
        except (OSError, ValueError):
            self._so_far = []
            self.__exit__(None, None, None)
            return
        if int(ran):  # a system that does not count tells zeros
            self._so_far.append(int(waited))

    def delays_ns(self) -> tuple[int, ...] | None:
        """Of every step; ``None`` where the system does not tell."""
        found = self._so_far
        if len(found) < 2:
            return None
        return tuple(b - a for a, b in itertools.pairwise(found))

    def others_share(self, others_cpu_s: float | None) -> float | None:
        """The share of the waits that is other programs', 0 to 1.

        Args:
            others_cpu_s: Processor seconds that others used since this probe was made.
        """
        if others_cpu_s is None:
            return None
        beside = max(0.0, _own_beside_this_thread_s() - self._own)
        both = others_cpu_s + beside
        return others_cpu_s / both if both > 0 else 0.0


def _own_beside_this_thread_s() -> float:
    """Processor seconds of our other threads and of our children."""
    return own_cpu_s() - time.thread_time()
