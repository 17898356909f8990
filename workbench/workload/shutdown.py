"""End an iterator: its worker processes, its threads, its generator frames."""

from types import GeneratorType
from typing import Any


def shut_down(iterator: Any) -> None:
    """End what ``iterator`` keeps running; harmless when it has ended already.

    A worker that does not leave within five seconds is terminated.
    """
    if isinstance(iterator, GeneratorType):
        iterator.close()
        return
    stop = getattr(iterator, "_shutdown_workers", None)
    if stop is not None:
        stop()
