"""Threads of operators, and the CPUs that this process may run on."""

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import torch

from workbench.errors import SettingError

_TASKS = Path("/proc/self/task")


def set_threads(threads: int, undo: ExitStack) -> None:
    """Let one operator use this many threads."""
    undo.callback(torch.set_num_threads, torch.get_num_threads())
    torch.set_num_threads(threads)


def set_interop_threads(threads: int) -> str | None:
    """Fix the threads for independent operators, which torch allows once in a process.

    Returns:
        What to say of it; ``None`` where the number was the same already.

    Raises:
        SettingError: When torch has fixed the number already.
    """
    now = torch.get_num_interop_threads()
    if now == threads:
        return None
    try:
        torch.set_num_interop_threads(threads)
    except RuntimeError as error:
        raise SettingError(
            f"interop_threads={threads} cannot act: torch fixes this number once in a process, and "
            f"it is {now} here already. Start a fresh process, or leave interop_threads out."
        ) from error
    return (
        f"interop_threads={threads} stays in this process (it was {now}): "
        "torch allows it to be set only once"
    )


def set_affinity(cpus: Sequence[int], undo: ExitStack) -> None:
    """Keep all threads of this process, and what it starts, on these CPUs.

    Raises:
        SettingError: Where the system has no such call, or does not allow one of the CPUs.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise SettingError("cpu_affinity cannot act: this system has no call for it; Linux has.")
    wanted, allowed = set(cpus), os.sched_getaffinity(0)
    before: dict[int, set[int]] = {}
    for task in _tasks():
        with suppress(ProcessLookupError):  # a thread that has ended meanwhile
            before[task] = os.sched_getaffinity(task)
    undo.callback(_put_back, before, allowed)
    try:
        for task in before:
            with suppress(ProcessLookupError):
                os.sched_setaffinity(task, wanted)
    except OSError as error:
        raise SettingError(_refused(cpus, allowed)) from error
    if os.sched_getaffinity(0) != wanted:
        raise SettingError(_refused(cpus, allowed))


def _refused(cpus: Sequence[int], allowed: set[int]) -> str:
    return (
        f"cpu_affinity={tuple(cpus)} cannot act: this process may run on the CPUs "
        f"{', '.join(map(str, sorted(allowed)))}. Choose among these."
    )


def _put_back(before: dict[int, set[int]], allowed: set[int]) -> None:
    """Threads that started meanwhile get what the process had."""
    for task in _tasks():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(task, before.get(task, allowed))


def _tasks() -> list[int]:
    """The threads of this process."""
    if not _TASKS.is_dir():
        return [0]
    return [int(task.name) for task in _TASKS.iterdir()]
