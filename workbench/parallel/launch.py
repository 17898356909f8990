"""Run one function in several fresh processes at once, and leave nothing of them behind."""

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

from workbench.errors import SettingError, TimeLimitError
from workbench.parallel import warden
from workbench.parallel.carrying import pack
from workbench.parallel.failures import explain, read_failures
from workbench.parallel.launched import launched, without_launcher
from workbench.parallel.launchers import LAUNCHERS
from workbench.parallel.rank import EVENTS
from workbench.workload.interrupts import Deferred

PREFIX = "workbench-ranks-"
LOOK_S = 0.05
STACKS_S = 0.5
_FRAMES = 5
"""Innermost lines of a rank that are told when time is over."""


def launch(
    function: Callable[..., Any],
    payload: Mapping[str, Any],
    *,
    world_size: int,
    launcher: str = "local",
    threads: int = 1,
    time_limit_s: float | None = 600,
    what: str = "wb.profile",
    on_event: Callable[[dict[str, Any]], None] | None = None,
    keep: Callable[[Path], None] | None = None,
) -> tuple[Any, ...]:
    """Run ``function(rank, payload)`` in every rank.

    Whatever happens, the ranks and their children are gone when this returns or raises, and so is
    the folder through which they talk. They die, too, when this process is killed.

    Args:
        function: Of a module that is installed, or of the notebook.
        payload: Named parts that every rank gets, as they are now.
        world_size: How many ranks.
        launcher: What starts them, a name of ``LAUNCHERS``.
        threads: Threads of one operator in each rank.
        time_limit_s: Seconds after which all is ended; ``None`` for no limit.
        what: Who asks, as the user wrote it.
        on_event: Is given what rank 0 says meanwhile.
        keep: Is given the job's folder when all ranks are done, to take files out of it.

    Returns:
        What the ranks gave, in their order.

    Raises:
        SettingError: This process is a rank of a job itself.
        TimeLimitError: It took too long; says where each rank was.
        RankError: A rank failed, with the traceback of the first one that did. An error of this
            package is raised as itself.
        WorkloadError: A part of the payload cannot be pickled.
    """
    refuse_nested(what)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    try:
        pack(folder, function, payload)
        with _started(folder, world_size, launcher, threads) as process:
            _watch(process, folder, time_limit_s, what, on_event)
        results = _results(folder, world_size)
        if keep is not None:
            keep(folder)
        return results
    finally:
        with Deferred(deaths=False):
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


@contextmanager
def _started(
    folder: Path, world_size: int, launcher: str, threads: int
) -> Iterator["subprocess.Popen[bytes]"]:
    command = LAUNCHERS[launcher](world_size, folder)
    log = (folder / "log").open("wb")
    process: subprocess.Popen[bytes] | None = None
    try:
        with Deferred():
            process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", warden.__file__, str(folder), *command.arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=rank_environment(threads) | command.environment,
            )
        yield process
    finally:
        log.close()
        if process is not None:
            with Deferred(deaths=False):
                _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Say that all is over, and wait until it is."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    process.wait()


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


def _watch(
    process: "subprocess.Popen[bytes]",
    folder: Path,
    time_limit_s: float | None,
    what: str,
    on_event: Callable[[dict[str, Any]], None] | None,
) -> None:
    began = time.monotonic()
    events: IO[str] | None = None
    try:
        while process.poll() is None:
            time.sleep(LOOK_S)
            if events is None and (folder / EVENTS).exists():
                events = (folder / EVENTS).open(encoding="utf-8")
            if events is not None and on_event is not None:
                _hand_on(events, on_event)
            if time_limit_s is not None and time.monotonic() - began > time_limit_s:
                raise TimeLimitError(_too_long(folder, time_limit_s, what))
    finally:
        if events is not None:
            events.close()


def _hand_on(events: IO[str], on_event: Callable[[dict[str, Any]], None]) -> None:
    while True:
        place = events.tell()
        line = events.readline()
        if not line.endswith("\n"):
            events.seek(place)
            return
        on_event(json.loads(line))


def _too_long(folder: Path, limit_s: float, what: str) -> str:
    """Where each rank was when the time was over."""
    numbers = sorted(folder.glob("rank*.pid"))
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
    where = "\n".join(said) or "no rank had started"
    return (
        f"{what} took longer than time_limit_s={limit_s:g}, and all its ranks were ended; your "
        f"model is as it was before. The ranks were at:\n{where}\n"
        "One that stands still outside a collective keeps the others waiting. If all are only "
        "slow, raise time_limit_s or ask for fewer steps."
    )


def _results(folder: Path, world_size: int) -> tuple[Any, ...]:
    """What every rank gave.

    Raises:
        Exception: The first failing rank's.
    """
    paths = [folder / f"rank{number}.result" for number in range(world_size)]
    silent = [number for number, path in enumerate(paths) if not path.exists()]
    if silent:
        failures = read_failures(folder)
        told = {failure.rank for failure in failures}
        log = (folder / "log").read_text(encoding="utf-8", errors="replace")
        quiet = [number for number in silent if number not in told]
        raise explain(failures, quiet, log, world_size)
    return tuple(pickle.loads(path.read_bytes()) for path in paths)  # noqa: S301 - our own ranks
