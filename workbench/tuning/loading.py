"""A sweep of the loader as the only part of a search: its choice, and its trials as rows."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.recording.progress import Progress
from workbench.settings import Settings
from workbench.tuning.attempt import Attempt, Decision
from workbench.tuning.candidates import LOADER
from workbench.tuning.journal import Journal
from workbench.tuning.numbers import parity
from workbench.tuning.sweep import LoaderSweep, SweepRow, sweep_loader
from workbench.tuning.trial import Outcome

if TYPE_CHECKING:
    from workbench.workload import Workload

WHOLE = ("finished", "keeps_up", "fixed")
"""How a sweep ends that needs not be done again."""
_OUTCOMES: dict[str, Outcome] = {
    "measured": "measured",
    "refused": "refused",
    "out_of_memory": "out_of_memory",
    "error": "error",
    "timed_out": "timed_out",
}


def swept(work: "Workload", journal: Journal, bar: Progress, budget_s: float) -> LoaderSweep:
    """The sweep that the journal holds, or a new one, which is written when it came to its end."""
    known = journal.get(LOADER)
    if known is not None:
        return LoaderSweep.from_json(known)
    found = sweep_loader(work, budget_s=budget_s, progress=bar)
    if found.ended in WHOLE:
        journal.add(found.to_json(), LOADER)
    return found


def attempts_of(work: "Workload", sweep: LoaderSweep) -> Iterator[Attempt]:
    """A row for each way of loading that differs from the loop as it is."""
    base = next((row for row in sweep.rows if row.as_it_is), None)
    for row in sweep.rows:
        if not row.as_it_is:
            yield _attempt(work, row, base, sweep)


def _attempt(work: "Workload", row: SweepRow, base: SweepRow | None, sweep: LoaderSweep) -> Attempt:
    kept = row.chosen and bool(sweep.settings.changes())
    settings = sweep.settings if kept else row.settings
    before = None if base is None else base.step_ns
    outcome = _OUTCOMES.get(row.outcome, "not_measured")
    decision: Decision = "kept" if kept else "reverted" if row.blocks else "not tried"
    return Attempt(
        change=settings,
        base=Settings(),
        origin=LOADER,
        outcome=outcome,
        decision=decision,
        reason=(row.reason or _reason(sweep, kept=kept)).rstrip("."),
        step_ns=row.step_ns,
        base_step_ns=before,
        ratio=sweep.ratio if kept else _over(row.step_ns, before),
        low=sweep.low if kept else _over(row.low_ns, before),
        high=sweep.high if kept else _over(row.high_ns, before),
        memory_bytes=row.memory_bytes,
        parity=parity(work, settings) if kept else None,
        blocks=row.blocks,
        notes=sweep.notes if kept else (),
    )


def _reason(sweep: LoaderSweep, *, kept: bool) -> str:
    if kept:
        return sweep.sentence
    return "it is not faster than the choice beyond the noise, or takes more workers"


def _over(value: float | None, before: float | None) -> float | None:
    return None if value is None or not before else value / before
