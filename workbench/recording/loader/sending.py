"""How long a worker's batches take to be pickled and written to the pipe.

A thread of the queue does both, beside the next batch; tensors are moved to shared memory while
they are pickled.
"""

import time
from collections.abc import Callable
from multiprocessing import queues
from multiprocessing.reduction import ForkingPickler
from typing import Any

from workbench.recording.loader.counters import Delay
from workbench.recording.loader.layout import MISSING, Kind, pack


class SendProbe:
    """Times the queue thread of one worker process."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._expected: dict[int, tuple[int, int]] = {}
        self._pickled: tuple[int, ...] | None = None
        self._delay: Delay | None = None
        """Of the queue's thread, which sleeps between batches."""
        self._delayed = 0
        self._queue: Any = None
        self._real_send: Any = None

    def install(self, queue: Any) -> None:
        """Time what this queue sends; its thread must not run yet."""
        self._queue, self._real_send = queue, queue._send_bytes
        queue._send_bytes = self._send
        queues._ForkingPickler = _pickler(self._dumps)  # type: ignore[attr-defined]

    def uninstall(self) -> None:
        """Time nothing more; a thread that runs goes on without being timed."""
        queues._ForkingPickler = ForkingPickler  # type: ignore[attr-defined]
        self._queue._send_bytes = self._real_send
        self._expected.clear()
        if self._delay is not None:
            self._delay.close()

    def expect(self, task: object, epoch: int, batch: int) -> None:
        """This object will be pickled next or soon."""
        self._expected[id(task)] = epoch, batch

    def _dumps(self, task: Any, protocol: int | None = None) -> Any:
        known = self._expected.pop(id(task), None)
        if known is None:
            return ForkingPickler.dumps(task, protocol)
        if self._delay is None:
            self._delay = Delay()
        cpu, began = time.thread_time_ns(), time.monotonic_ns()
        try:
            data = ForkingPickler.dumps(task, protocol)
        except Exception as error:  # noqa: BLE001 - of the user's objects, or of a full /dev/shm
            # The queue would print it and drop the batch, for which the loop then waits for ever.
            data = ForkingPickler.dumps(_instead(task, error), protocol)
        took, cpu = time.monotonic_ns() - began, time.thread_time_ns() - cpu
        self._pickled = (*known, began, took, cpu)
        return data

    def _send(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        pickled, self._pickled = self._pickled, None
        if pickled is None:
            return self._real_send(data, *args, **kwargs)
        try:
            return self._real_send(data, *args, **kwargs)
        finally:
            # From pickling on: the lock that workers share is waited for before the pipe is.
            done = pickled[2] + pickled[3]
            ended = time.monotonic_ns()
            self._write(pack(Kind.SEND, *pickled, ended - done, len(data), self._delay_since()))

    def _delay_since(self) -> int:
        """Time without a processor since the last batch: from when this one was put, all of it."""
        now = MISSING if self._delay is None else self._delay.read()
        if now == MISSING:
            return MISSING
        before, self._delayed = self._delayed, now
        return now - before


def _instead(task: Any, error: Exception) -> Any:
    """The answer that says why there is no batch, made as torch's workers make it."""
    from torch._utils import ExceptionWrapper
    from torch.utils.data import get_worker_info

    info = get_worker_info()
    where = "in DataLoader worker process" + ("" if info is None else f" {info.id}")
    wrapper: Any = ExceptionWrapper
    known = type(error), error, error.__traceback__
    wrapped = wrapper(known, f"{where}, while its batch was handed over")
    number, answer = task
    if isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[1], int):
        return number, (wrapped, *answer[1:])  # torchdata's workers send their state with it
    return number, wrapped


def _pickler(dumps: Callable[..., Any]) -> type[ForkingPickler]:
    class TimedPickler(ForkingPickler):
        """ForkingPickler, timed."""

    TimedPickler.dumps = staticmethod(dumps)  # type: ignore[method-assign]
    return TimedPickler
