"""A small discrete-event machine: processes, queues and delays in whole nanoseconds.

A process is a generator. It yields a number to let that much time pass, or a queue to take the next
thing out of it, for which it waits.
"""

import heapq
from collections import deque
from collections.abc import Generator
from typing import Any

Process = Generator["int | Queue", Any, None]


class Queue:
    """First in, first out; the process that waited longest is served first."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine
        self._things: deque[Any] = deque()
        self._waiting: deque[Process] = deque()

    def put(self, thing: Any) -> None:
        """Hand it to whoever waits, or keep it."""
        if self._waiting:
            self._machine.resume(self._waiting.popleft(), thing)
        else:
            self._things.append(thing)

    def take(self, process: Process) -> None:
        """Give this process the next thing, now or when there is one."""
        if self._things:
            self._machine.resume(process, self._things.popleft())
        else:
            self._waiting.append(process)


class Machine:
    """Runs processes in the order of time."""

    def __init__(self) -> None:
        self.now = 0
        self._events: list[tuple[int, int, Process, Any]] = []
        self._count = 0

    def resume(self, process: Process, value: Any = None, after: int = 0) -> None:
        """Let a process go on with this value, after so many nanoseconds."""
        self._count += 1
        heapq.heappush(self._events, (self.now + after, self._count, process, value))

    def run(self) -> None:
        """Until nothing is left to happen."""
        while self._events:
            self.now, _, process, value = heapq.heappop(self._events)
            try:
                wanted = process.send(value)
            except StopIteration:
                continue
            if isinstance(wanted, Queue):
                wanted.take(process)
            else:
                self.resume(process, after=wanted)
