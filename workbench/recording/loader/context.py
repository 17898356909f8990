"""How the worker processes of a loader start: as always, with our function around theirs."""

import time
import weakref
from typing import Any

from workbench.recording.loader.worker import Ticket, run


class ProbedContext:
    """A multiprocessing context whose processes are recorded; everything else is the real one's.

    Args:
        real: The context that the loader would have used.
        folder: Where side files go.
        stream: Number of the iterator that will use it.
        call_ns: What listening to one call of a C function costs here.
    """

    def __init__(self, real: Any, folder: str, stream: int, call_ns: int) -> None:
        self._real = real
        self._folder = folder
        self._call_ns = call_ns
        self.stream = stream
        self.processes: list[Any] = []
        self.queue: Any = None
        """The queue of the results: torch makes it before the workers."""

    def Queue(self, *args: Any, **kwargs: Any) -> Any:  # noqa: N802 - multiprocessing's name
        """A queue; the first one carries the batches."""
        queue = self._real.Queue(*args, **kwargs)
        if self.queue is None:
            self.queue = weakref.ref(queue)
        return queue

    def Process(self, *, target: Any, args: Any = (), kwargs: Any = None, **more: Any) -> Any:  # noqa: N802
        """A worker process whose target is entered through our function."""
        ticket = Ticket(
            folder=self._folder,
            stream=self.stream,
            number=len(self.processes),
            created_ns=time.monotonic_ns(),
            call_ns=self._call_ns,
        )
        process = self._real.Process(target=run, args=(ticket, target, args, kwargs or {}), **more)
        self.processes.append(process)
        return process

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
