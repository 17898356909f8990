"""How the worker processes of a loader start: as always, with our function around theirs."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.recording.loader.worker import Ticket, run


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What is kept of a worker process that left by itself; its open files go with it."""

    pid: int | None
    exitcode: int


class ProbedContext:
    """A multiprocessing context whose processes are recorded; everything else is the real one's.

    It acts for the thread that made it; whatever others start meanwhile is none of ours.

    Args:
        given: The context that the loader was given, if any.
        real: The context that the loader would have used.
        folder: Where side files go.
        stream: Number of the iterator that will use it.
        call_ns: What listening to one call of a C function costs here.
    """

    def __init__(self, given: Any, real: Any, folder: str, stream: int, call_ns: int) -> None:
        self._given = given
        self._real = real
        self._folder = folder
        self._call_ns = call_ns
        self._thread = threading.get_ident()
        self.stream = stream
        self.processes: list[Any] = []
        """Worker processes in the order of their start; :class:`Ended` for those long gone."""

    def Process(self, *args: Any, **more: Any) -> Any:  # noqa: N802 - multiprocessing's name
        """A worker process whose target is entered through our function."""
        if args or more.get("target") is None or threading.get_ident() != self._thread:
            return self._real.Process(*args, **more)
        ticket = Ticket(
            folder=self._folder,
            stream=self.stream,
            number=len(self.processes),
            created_ns=time.monotonic_ns(),
            call_ns=self._call_ns,
        )
        target, given = more.pop("target"), (more.pop("args", ()), more.pop("kwargs", None) or {})
        process = self._real.Process(target=run, args=(ticket, target, *given), **more)
        self.processes.append(process)
        return process

    def forget_ended(self) -> None:
        """Let go of processes that left by themselves: each holds two open files.

        Those that died are left to torch, which asks the system how they ended.
        """
        for number, process in enumerate(self.processes):
            if not isinstance(process, Ended) and _left(process):
                self.processes[number] = Ended(pid=process.pid, exitcode=process.exitcode)

    def running(self) -> list[tuple[int, int]]:
        """Number and process of the workers that may still run."""
        return [
            (number, process.pid)
            for number, process in enumerate(list(self.processes))
            if not isinstance(process, Ended) and process.pid is not None
        ]

    def __getattr__(self, name: str) -> Any:
        if name == "_real":
            raise AttributeError(name)
        return getattr(self._real, name)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # A part of the loader that holds it, copied or sent to a worker, gets the user's own.
        return _itself, (self._given,)


def _itself(given: Any) -> Any:
    return given


def _left(process: Any) -> bool:
    """Whether a process has ended well, without taking the news from anybody."""
    if process.pid is None or not hasattr(os, "waitid"):
        return False
    try:
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # somebody has waited for it already
        return process.exitcode is not None
    return ended is not None and ended.si_status == 0 and ended.si_code == os.CLD_EXITED
