"""``workbench.parallel.collectives()``: what collectives cost here, measured for every back end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.errors import SettingError, TimeLimitError, WorkloadError
from workbench.parallel.collectives_costs import CollectiveCosts, Measured
from workbench.parallel.collectives_plan import BACKENDS, KINDS, SIZES, Plan, absent, checked
from workbench.parallel.launched import without_launcher
from workbench.parallel.mpirun import mpirun_arguments, mpirun_environment
from workbench.parallel.process_tree import let_go, start_tree
from workbench.recording.progress import Progress
from workbench.workload.interrupts import Deferred

POLL_S = 0.05
LAST_LINES = 12


def collectives(
    *,
    backends: Sequence[str] | None = None,
    world_size: int = 2,
    kinds: Sequence[str] = KINDS,
    sizes: Sequence[int] = SIZES,
    threads: int = 1,
    time_limit_s: float = 180,
    progress: bool = True,
) -> CollectiveCosts:
    """Measure collectives over sizes of messages, on this machine, for every back end present.

    Every back end runs in ``world_size`` fresh processes, one after the other; nothing of them
    stays, whether it ends, is interrupted, or meets the time limit. What was measured until the
    limit is kept and said.

    Args:
        backends: Of gloo, nccl, xccl, mpi (torch's own) and mpi4py; left out: those present.
        world_size: Ranks, each a process here.
        kinds: Of all_reduce, all_gather, reduce_scatter, all_to_all and broadcast.
        sizes: Bytes: of all ranks' buffers together for all_gather and reduce_scatter, else of one.
        threads: Of every rank.
        time_limit_s: For all of it.
        progress: Whether to show a bar where somebody looks.

    Raises:
        SettingError: Something asked for is not possible here.
        TimeLimitError: The time was over before anything was measured.
        WorkloadError: The ranks of every back end failed; with what they said last. Where another
            one was measured, its results come back and a note says what failed.
    """
    checked(backends, world_size, kinds, sizes)
    missing = {name: why for name in BACKENDS if (why := absent(name)) is not None}
    wanted = [name for name in BACKENDS if name not in missing] if backends is None else backends
    refused = [f"{name}: {missing[name]}" for name in wanted if name in missing]
    if refused:
        raise SettingError(f"Not to be measured here: {'; '.join(refused)}.")
    if not wanted:
        raise SettingError("No back end is here: install torch, or mpirun and mpi4py.")
    deadline = time.monotonic() + time_limit_s
    measured: list[Measured] = []
    copies: dict[str, float] = {}
    notes: list[str] = []
    failed: list[WorkloadError] = []
    with Progress(shown=progress, title="collectives") as bar:
        for name in wanted:
            bar.stage(name)
            plan = Plan(
                backend=name,
                world_size=world_size,
                kinds=tuple(kinds),
                sizes=tuple(sorted(set(sizes))),
                threads=threads,
            )
            try:
                found, copy, note = _measure(plan, deadline)
            except WorkloadError as error:
                failed.append(error)
                notes.append(str(error))
                continue
            measured += found
            notes += note
            if copy is not None:
                copies[name] = copy
    if not measured and failed:
        raise failed[0]
    if not measured:
        raise TimeLimitError(
            f"Nothing was measured within {time_limit_s:g} s: {' '.join(notes)} "
            "Give a longer time_limit_s=, or fewer sizes."
        )
    return CollectiveCosts(
        measured=tuple(measured),
        world_size=world_size,
        copy_gb_s=max(copies.values(), default=None),
        absent=missing,
        notes=tuple(notes),
    )


def _measure(plan: Plan, deadline: float) -> tuple[list[Measured], float | None, list[str]]:
    """One back end: what its ranks measured, how fast they copy, and what is to be said."""
    with tempfile.TemporaryDirectory(prefix="workbench-collectives-") as name:
        folder = Path(name)
        told = {
            "backend": plan.backend,
            "world_size": plan.world_size,
            "kinds": plan.kinds,
            "sizes": plan.sizes,
            "threads": plan.threads,
        }
        (folder / "plan.json").write_text(json.dumps(told))
        started: list[subprocess.Popen[bytes]] = []
        try:
            with (folder / "said.txt").open("wb") as said:
                for command, environment in _commands(plan, folder):
                    with Deferred():  # none may run that is not in the list
                        started.append(_start(command, environment, said, folder))
                over = _wait(started, deadline)
        finally:
            with Deferred():
                for process in started:
                    let_go(process)
        failed = next((p.returncode for p in started if p.returncode), None)
        if failed is not None and not over:
            raise WorkloadError(_failure(plan, failed, folder))
        lines = _read(folder, plan.world_size)
    note = []
    whole = len(plan.kinds) * len(plan.sizes)
    found = _together(plan, lines)
    if len(found) < whole:
        note.append(
            f"The time limit ended {plan.backend} after {len(found)} of {whole} measurements."
        )
    rates = [line["copy_gb_s"] for each in lines for line in each if "copy_gb_s" in line]
    return found, min(rates) if rates else None, note


def _commands(plan: Plan, folder: Path) -> list[tuple[list[str], dict[str, str]]]:
    """What to start: a process for each rank, or mpirun once."""
    program = [sys.executable, "-P", "-m", "workbench.parallel.collectives_worker", str(folder)]
    threads = {"OMP_NUM_THREADS": str(plan.threads)}
    if plan.backend in ("mpi", "mpi4py"):
        return [([*mpirun_arguments(plan.world_size), *program], mpirun_environment() | threads)]
    count = str(plan.world_size)
    return [
        (
            program,
            {"RANK": str(rank), "WORLD_SIZE": count, "LOCAL_RANK": str(rank), **threads},
        )
        for rank in range(plan.world_size)
    ]


def _start(
    command: list[str], environment: dict[str, str], said: Any, folder: Path
) -> subprocess.Popen[bytes]:
    """A process that ends with this one; what it measured stays when it is ended."""
    clean = without_launcher(os.environ)
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, [clean.get("PYTHONPATH")])]
    environment = {**clean, **environment, "PYTHONPATH": os.pathsep.join(paths)}
    return start_tree(command, environment, said, folder=folder / "nothing")


def _wait(started: list[subprocess.Popen[bytes]], deadline: float) -> bool:
    """Until all are done or one has failed; whether the time is over."""
    while True:
        codes = [process.poll() for process in started]
        if all(code == 0 for code in codes) or any(codes):
            return False
        if time.monotonic() > deadline:
            return True
        time.sleep(POLL_S)


def _read(folder: Path, world_size: int) -> list[list[dict[str, Any]]]:
    """The whole lines of every rank; one that was being written is left out."""
    found = []
    for rank in range(world_size):
        path = folder / f"rank{rank}.jsonl"
        text = path.read_text() if path.is_file() else ""
        found.append([json.loads(line) for line in text.split("\n")[:-1]])
    return found


def _together(plan: Plan, lines: list[list[dict[str, Any]]]) -> list[Measured]:
    """Of every repetition the slowest rank's time: a collective is over when the last one is."""
    by_case: dict[tuple[str, int], list[list[int]]] = {}
    for each in lines:
        for line in each:
            if "collective" in line:
                by_case.setdefault((line["collective"], line["bytes"]), []).append(line["ns"])
    return [
        Measured(
            backend=plan.backend,
            collective=kind,
            bytes=size,
            ranks=plan.world_size,
            ns=tuple(max(times) for times in zip(*ranks, strict=True)),
        )
        for (kind, size), ranks in by_case.items()
        if len(ranks) == plan.world_size
    ]


def _failure(plan: Plan, code: int, folder: Path) -> str:
    text = (folder / "said.txt").read_text(errors="replace").strip()
    last = "\n".join(text.splitlines()[-LAST_LINES:])
    return (
        f"The ranks of {plan.backend} ended with code {code}. They said last:\n{last}\n"
        "Mend what they say, or leave it out: name the other back ends in backends=(...)."
    )
