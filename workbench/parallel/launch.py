"""Run one function in several fresh processes at once, and leave nothing of them behind."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.errors import TimeLimitError
from workbench.parallel.job import Job, running

LOOK_S = 0.05


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
    look: Callable[[], None] | None = None,
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
        look: Is called several times a second; what it raises ends the job.

    Returns:
        What the ranks gave, in their order.

    Raises:
        SettingError: This process is a rank of a job itself.
        TimeLimitError: It took too long; says where each rank was.
        RankError: A rank failed, with the traceback of the first one that did. An error of this
            package is raised as itself.
        WorkloadError: A part of the payload cannot be pickled.
    """
    with running(
        function,
        payload,
        world_size=world_size,
        launcher=launcher,
        threads=threads,
        what=what,
    ) as job:
        began = time.monotonic()
        while not job.is_over:
            time.sleep(LOOK_S)
            _hand_on(job, on_event)
            if look is not None:
                look()
            if time_limit_s is not None and time.monotonic() - began > time_limit_s:
                raise TimeLimitError(_too_long(job, time_limit_s, what))
        _hand_on(job, on_event)
        results = job.results()
        if keep is not None:
            keep(job.folder)
        return results


def _hand_on(job: Job, on_event: Callable[[dict[str, Any]], None] | None) -> None:
    if on_event is not None:
        for event in job.events():
            on_event(event)


def _too_long(job: Job, limit_s: float, what: str) -> str:
    """Where each rank was when the time was over."""
    return (
        f"{what} took longer than time_limit_s={limit_s:g}, and all its ranks were ended; your "
        f"model is as it was before. The ranks were at:\n{job.whereabouts()}\n"
        "One that stands still outside a collective keeps the others waiting. If all are only "
        "slow, raise time_limit_s or ask for fewer steps."
    )
