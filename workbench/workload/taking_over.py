"""Take tensors over from a loader's worker process without breaking off half-way.

A worker hands each tensor's memory over by a file descriptor, for which the two processes greet
each other first. Where an interrupt breaks the greeting off, the worker prints a traceback of
``multiprocessing.resource_sharer`` that is nobody's error.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_sharer
from typing import Any

from workbench.workload.interrupts import Deferred


@contextmanager
def whole_take_over() -> Iterator[None]:
    """Inside, interrupts arrive before or after a descriptor is taken over, in every thread."""
    _TAKING.enter()
    try:
        yield
    finally:
        _TAKING.leave()


class _Taking:
    """Holds interrupts back in ``DupFd.detach`` while anybody takes batches over."""

    def __init__(self) -> None:
        self._kind: Any = getattr(resource_sharer, "DupFd", None)  # Windows has none
        self._lock = threading.Lock()
        self._inside = 0
        self._real: Any = None

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1 and self._kind is not None:
                real = self._real = self._kind.detach

                def detach(descriptor: Any) -> int:
                    with Deferred():
                        taken: int = real(descriptor)
                    return taken

                self._kind.detach = detach

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._kind is not None:
                self._kind.detach = self._real


_TAKING = _Taking()
