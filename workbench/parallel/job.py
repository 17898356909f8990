"""One function in several fresh processes at once: started, watched, and gone at the end."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from workbench.errors import SettingError
from workbench.parallel.carrying import pack
from workbench.parallel.failures import explain, read_failures
from workbench.parallel.launched import launched, without_launcher
from workbench.parallel.launchers import LAUNCHERS
from workbench.parallel.process_tree import let_go, start_tree
from workbench.parallel.rank import EVENTS
from workbench.workload.interrupts import Deferred

PREFIX = "workbench-ranks-"
STACKS_S = 0.5
_FRAMES = 5
"""Innermost lines of a rank that are told when time is over."""


class Job:
    """Ranks that run, as the process that started them sees them.

    Attributes:
        folder: Through which they talk.
        world_size: How many there are.
    """

    def __init__(self, folder: Path, world_size: int, process: "subprocess.Popen[bytes]") -> None:
        self.folder = folder
        self.world_size = world_size
        self._process = process
        self._events: IO[str] | None = None

    @property
    def is_over(self) -> bool:
        """Whether all ranks have ended."""
        return self._process.poll() is not None

    def events(self) -> Iterator[dict[str, Any]]:
        """What rank 0 has said since this was asked last."""
        if self._events is None:
            if not (self.folder / EVENTS).exists():
                return
            self._events = (self.folder / EVENTS).open(encoding="utf-8")
        while True:
            place = self._events.tell()
            line = self._events.readline()
            if not line.endswith("\n"):
                self._events.seek(place)
                return
            yield json.loads(line)

    def whereabouts(self) -> str:
        """Where each rank is just now: its innermost lines, a row a rank."""
        numbers = sorted(self.folder.glob("rank*.pid"))
        for path in numbers:
            with suppress(OSError, ValueError):
                if hasattr(signal, "SIGUSR1"):
                    os.kill(int(path.read_text()), signal.SIGUSR1)
        time.sleep(STACKS_S if numbers else 0)
        said = []
        for path in numbers:
            stack = path.with_suffix(".stacks").read_text(encoding="utf-8")
            lines = [line.strip() for line in stack.splitlines() if line.startswith("  File")]
            lines = [line for line in lines if "<frozen" not in line][:_FRAMES]
            done = path.with_suffix(".result").exists()
            said.append(f"{path.stem}: " + ("done" if done else " < ".join(lines) or "starting"))
        return "\n".join(said) or "no rank had started"

    def results(self) -> tuple[Any, ...]:
        """What every rank gave, once all have ended.

        Raises:
            Exception: The first failing rank's.
        """
        paths = [self.folder / f"rank{number}.result" for number in range(self.world_size)]
        silent = [number for number, path in enumerate(paths) if not path.exists()]
        if silent:
            failures = read_failures(self.folder)
            told = {failure.rank for failure in failures}
            log = (self.folder / "log").read_text(encoding="utf-8", errors="replace")
            quiet = [number for number in silent if number not in told]
            raise explain(failures, quiet, log, self.world_size)
        return tuple(pickle.loads(path.read_bytes()) for path in paths)  # noqa: S301 - our own

    def end(self) -> None:
        """End what still runs, and wait until it is gone; doing it twice is fine."""
        with Deferred(deaths=False):
            if self._events is not None:
                self._events.close()
                self._events = None
            let_go(self._process)


@contextmanager
def running(
    function: Callable[..., Any],
    payload: Mapping[str, Any],
    *,
    world_size: int,
    launcher: str = "local",
    threads: int = 1,
    what: str,
    ready: Callable[[Path], None] | None = None,
) -> Iterator[Job]:
    """Start a job; when the block ends the ranks, their children and their folder are gone.

    Args:
        function: Is called with a rank and the payload, in every rank.
        payload: Named parts that every rank gets, as they are now.
        world_size: How many ranks.
        launcher: What starts them, a name of ``LAUNCHERS``.
        threads: Threads of one operator in each rank.
        what: Who asks, as the user wrote it.
        ready: Puts more into the job's folder before any rank starts.

    Raises:
        SettingError: This process is a rank of a job itself.
        WorkloadError: A part of the payload cannot be pickled.
    """
    refuse_nested(what)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    job: Job | None = None
    try:
        pack(folder, function, payload)
        if ready is not None:
            ready(folder)
        with Deferred():
            job = _started(folder, world_size, launcher, threads)
        yield job
    finally:
        with Deferred(deaths=False):
            if job is not None:
                job.end()
            shutil.rmtree(folder, ignore_errors=True)


def refuse_nested(what: str) -> None:
    """Refuse to start ranks from a process that is one.

    Raises:
        SettingError: Saying which rank it is.
    """
    where = launched()
    if where is not None and where.world_size > 1:
        raise SettingError(
            f"{what} cannot start ranks here: this process is already rank {where.rank} of "
            f"{where.world_size} (started by {where.by}). Leave parallel out and use wb.capture "
            "on every rank, or start from a process of its own."
        )


def _started(folder: Path, world_size: int, launcher: str, threads: int) -> Job:
    command = LAUNCHERS[launcher](world_size, folder)
    with (folder / "log").open("wb") as log:
        environment = rank_environment(threads) | command.environment
        process = start_tree(command.arguments, environment, log, folder=folder)
    return Job(folder, world_size, process)


def rank_environment(threads: int) -> dict[str, str]:
    """This process's environment without a launcher's, with its import path and loopback only."""
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        **without_launcher(os.environ),
        **dict.fromkeys(names, str(threads)),
        **dict.fromkeys(("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"), loopback),
        "PYTHONPATH": os.pathsep.join(place or str(Path.cwd()) for place in sys.path),
        "PYTHONUNBUFFERED": "1",
    }
