"""``wb.tune``: search the settings of a loop by measured trials, and keep what helps."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkloadError
from workbench.profiling.profile import RUNS
from workbench.recording.ownership import claim
from workbench.store.names import as_folder
from workbench.tuning.budget import seconds_of
from workbench.tuning.candidates import LOADER, fields_asked
from workbench.tuning.journal import identity, open_journal
from workbench.tuning.search import Search
from workbench.tuning.telling import BestSoFar
from workbench.tuning.tuning import Tuning

if TYPE_CHECKING:
    from workbench.workload import Workload


def tune(
    work: "Workload",
    *,
    budget: str | float = "5 min",
    only: str | Sequence[str] | None = None,
    folder: str | Path | None = None,
    progress: bool = True,
) -> Tuning:
    """Search for settings that make this loop faster without changing what it computes.

    The loop is profiled shortly, and the setting of the worst finding is tried against it in
    interleaved blocks. What is faster beyond noise, with numbers as expected, is kept and the
    loop profiled again; the rest is reverted. Then come settings that no finding names. A hopeless
    change is dropped after its first blocks. It ends when nothing that is left could gain more
    than the noise, when the budget is spent, or at the first interrupt, with the result so far.

    Settings that change the training, such as a larger batch, are compared by sample and said
    plainly; the learning rate is never touched. Afterwards everything is as it was.

    Args:
        work: Model, data and step.
        budget: How long it may take: ``"5 min"``, ``"90 s"``, or seconds.
        only: ``"loader"``, which sweeps workers, queue, pinning and fetch by short trials of their
            own and leaves the rest alone, or names of settings to which the search is limited.
            ``"parallel"`` tries ddp, fsdp, tp and pp; each block starts processes for it, so give
            it ten minutes.
        folder: Where each trial is written at once. A folder with the tuning of the same workload
            is gone on with, and nothing in it is measured again. Left out: a new one in ``runs``.
        progress: Show a progress bar.

    Raises:
        SettingError: ``budget`` or ``only`` is no such thing, or ``folder`` holds the tuning of
            something else.
        WorkloadError: The loop fails as it is.
        TimeLimitError: The budget was over before the loop had been measured once.
        RunError: The folder cannot be written.
    """
    _check(work)
    seconds, began = seconds_of(budget), time.monotonic()
    loader_only = only == LOADER or (isinstance(only, list | tuple) and list(only) == [LOADER])
    fields = None if loader_only else fields_asked(only)
    journal = open_journal(
        None if folder is None else as_folder(folder, RUNS),
        Path(RUNS),
        f"{work.title}-tuning",
        {**identity(work), "only": LOADER if loader_only else fields and sorted(fields)},
    )
    claim("wb.tune").release()  # another profiler is an error before anything is written
    with BestSoFar(shown=progress, title=work.title) as bar:
        search = Search(
            work=work,
            journal=journal,
            bar=bar,
            budget_s=seconds,
            only=fields,
            loader_only=loader_only,
        )
        try:
            search.go()
        finally:
            journal.forget_if_empty()
    return Tuning(
        title=work.title,
        best=search.best,
        attempts=tuple(search.attempts),
        lines=tuple(search.history),
        ended=search.ended,
        look=search.look,
        overall=search.overall,
        sweep=search.sweep,
        elapsed_s=round(time.monotonic() - began, 3),
        folder=journal.folder,
    )


def _check(work: Any) -> None:
    from workbench.workload import Workload

    if not isinstance(work, Workload):
        raise WorkloadError(
            f"wb.tune needs a Workload, not a {type(work).__name__}: "
            "wb.tune(wb.Workload(model, data, loss=..., optimizer=...))."
        )
