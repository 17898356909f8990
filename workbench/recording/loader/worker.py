"""Inside a worker process: torch's own loop runs, with what it calls timed.

Everything that is replaced here belongs to the worker's process alone.
"""

import inspect
import os
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.recording.loader.fetch import FetchProbe
from workbench.recording.loader.layout import MISSING, Kind, SideFile, pack
from workbench.recording.loader.sending import SendProbe
from workbench.recording.loader.switch import Switch


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """What a worker has to know to be recorded; travels to it with its arguments."""

    folder: str
    stream: int
    """Number of the iterator that started it."""
    number: int
    """How many processes that iterator started before it."""
    created_ns: int
    call_ns: int
    """What listening to one call costs here, measured by the training process."""

    @property
    def side_file(self) -> Path:
        """Where the worker's records go."""
        return Path(self.folder) / f"{self.stream}-{self.number}.records"

    @property
    def switch(self) -> Path:
        """The byte that says whether to record."""
        return Path(self.folder) / "switch"


def run(ticket: Ticket, target: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """The target of a worker process: its real one, recorded where that is possible."""
    entered = time.monotonic_ns()
    with suppress(Exception):  # a probe that cannot start must not cost the user a worker
        WorkerProbe(ticket, entered).install(target, args, kwargs)
    target(*args, **kwargs)


class WorkerProbe:
    """Times one worker: its waits for an index, its batches, and how they are handed over."""

    def __init__(self, ticket: Ticket, entered_ns: int) -> None:
        self._ticket = ticket
        self._entered_ns = entered_ns
        self._switch = Switch(ticket.switch)
        self._file = SideFile(ticket.side_file)
        self._fetch = FetchProbe(self._file.write, ticket.call_ns)
        self._send = SendProbe(self._file.write)
        self._fetchers: list[weakref.ref[Any]] = []
        self._real_create: Any = None
        self._queues: tuple[Any, Any] | None = None
        self._worker = MISSING
        self._began = 0
        self._ready = False

    def install(self, target: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """Put the probes on what torch's loop will call."""
        from torch.utils.data import _DatasetKind

        given = inspect.signature(target).bind(*args, **kwargs).arguments
        self._worker = given["worker_id"]
        indices, batches = given["index_queue"], given["data_queue"]
        self._real_create = _DatasetKind.__dict__["create_fetcher"]
        real: Callable[..., Any] = _DatasetKind.create_fetcher

        def create_fetcher(*args: Any, **kwargs: Any) -> Any:
            fetcher = real(*args, **kwargs)
            with suppress(AttributeError):
                self._fetch.attach(fetcher)
                self._fetchers.append(weakref.ref(fetcher))
            return fetcher

        self._send.install(batches)  # first, because only this fails on queues of another kind
        _DatasetKind.create_fetcher = staticmethod(create_fetcher)  # type: ignore[method-assign]
        self._queues = indices, batches
        indices.get = self._get
        batches.put = self._put

    def _get(self, *args: Any, **kwargs: Any) -> Any:
        """Wait for an index."""
        if self._queues is None:
            raise AssertionError("only called on the queue of a worker that is recorded")
        queue = self._queues[0]
        if not self._ready:
            self._start()
        if not self._began:
            self._began = time.monotonic_ns()
        task = type(queue).get(queue, *args, **kwargs)
        self._fetch.wait = (self._began, time.monotonic_ns() - self._began)
        self._began = 0
        if not self._switch.is_on:
            self._uninstall(*self._queues)
        return task

    def _put(self, task: Any, *args: Any, **kwargs: Any) -> None:
        """Hand a batch over, or an answer that is none."""
        if self._queues is None:
            raise AssertionError("only called on the queue of a worker that is recorded")
        queue = self._queues[1]
        if isinstance(task[0], int):
            name = type(_result(task[1])).__name__
            if name != "_IterableDatasetStopIteration":
                self._fetch.finish(task[0], failed=name == "ExceptionWrapper")
                self._send.expect(task, self._fetch.epoch, task[0])
        elif type(task[0]).__name__ == "_ResumeIteration":
            self._fetch.epoch += 1
        type(queue).put(queue, task, *args, **kwargs)

    def _start(self) -> None:
        self._ready = True
        ticket, now = self._ticket, time.monotonic_ns()
        self._file.write(
            pack(
                Kind.START,
                ticket.stream,
                self._worker,
                os.getpid(),
                ticket.created_ns,
                self._entered_ns,
                now,
                time.process_time_ns(),
            )
        )

    def _uninstall(self, indices: Any, batches: Any) -> None:
        """The run is over: leave the worker as torch made it."""
        from torch.utils.data import _DatasetKind

        _DatasetKind.create_fetcher = self._real_create  # type: ignore[method-assign]
        for known in self._fetchers:
            if (fetcher := known()) is not None:
                fetcher.__dict__.pop("fetch", None)
        indices.__dict__.pop("get", None)
        batches.__dict__.pop("put", None)
        self._send.uninstall()
        self._fetch.close()
        self._file.close()
        self._switch.close()


def _result(answer: Any) -> Any:
    """The batch in an answer; torchdata's workers send their state with it."""
    if isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[1], int):
        return answer[0]
    return answer
