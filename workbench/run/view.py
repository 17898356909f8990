"""What a Run shows of itself: its answers as the plain results that pages are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.pages.view import Breakdown, RunView
from workbench.run.breakdowns import MOST_RANKS, breakdowns, whose
from workbench.run.verdict import foremost, verdict
from workbench.units import count_text, significant, spread_text

if TYPE_CHECKING:
    from workbench.run.run import Run
    from workbench.store.record import RunRecord
    from workbench.trace.table import Violation


def view(run: Run) -> RunView:
    """The page of a Run: of every rank where the parts go, of all ranks together the tables."""
    from workbench.run.ceilings import ceilings
    from workbench.run.view_tables import tables_of

    # In this order, what the headline reads of the first of many ranks is still there for the
    # summary, which reads each trace once for everything below.
    line, summary = run.headline, run.summary
    return RunView(
        title=run.name,
        verdict=verdict(run),
        headline=None if line is None else line.sentence,
        ceilings=ceilings(run.record),
        findings=run.findings,
        breakdowns=_places(run),
        tables=tables_of(run),
        measured=_measured(run),
        trust=_untrusted(run),
        not_measured=summary.not_measured,
    )


def _places(run: Run) -> tuple[Breakdown, ...]:
    """Where the parts go, that of which the verdict speaks first."""
    about, device = foremost(run)
    shown = [about, *(rank for rank in run.ranks[:MOST_RANKS] if rank is not about)][:MOST_RANKS]
    made: list[Breakdown] = []
    for rank in shown:
        own = breakdowns(rank, whose(run, rank))
        if rank is about and device is not None:
            at = tuple(rank.device_time).index(device)
            own = (own[at], *own[:at], *own[at + 1 :])
        made += own
    return tuple(made)


def _untrusted(run: Run) -> tuple[str, ...]:
    """The failed checks that make numbers void, each with its rank where there are several."""
    return (
        *(
            f"{whose(run, rank)}{violation.message}"
            for rank in run.ranks
            for violation in rank.own_trust.violations
            if violation.voids
        ),
        *(violation.message for violation in _between_ranks(run) if violation.voids),
    )


def _between_ranks(run: Run) -> tuple[Violation, ...]:
    return () if run.job is None else run.job.violations


def _measured(run: Run) -> tuple[tuple[str, str], ...]:
    rows = [("trace", ", ".join(trace.name for trace in run.traces))]
    if len(run.ranks) > MOST_RANKS:
        said = f"{len(run.ranks)}; where their time goes is shown for {MOST_RANKS} of them"
        rows.append(("ranks", said))
    if run.record is not None:
        rows += _recorded(run.record)
    rows += [("note", note) for note in run.notes]
    rows += [
        ("note", f"{whose(run, rank)}{violation.message}")
        for rank in run.ranks
        for violation in rank.own_trust.violations
        if not violation.voids and violation.message not in run.notes
    ]
    rows += [("note", each.message) for each in _between_ranks(run) if not each.voids]
    return tuple(rows)


def _recorded(record: RunRecord) -> list[tuple[str, str]]:
    rows = [("recorded", record.created), ("settings", _pairs(record.settings) or "as it is")]
    rows.append(("in force", _pairs(record.effective)))
    if record.timings is not None:
        warmup = record.timings.warmup
        count = count_text(len(record.timings.step_ns) - warmup)
        said = f"{count} without the profiler, after {warmup} of warm-up"
        rows.append(("steps of record", said))
        rows.append(("noise", _noise(record)))
    if record.overhead_ratio is not None:
        said = f"{significant(record.overhead_ratio)} times a step without it"
        rows.append(("a step under the profiler", said))
    rows.append(("versions", _pairs(record.environment)))
    rows += [("warning", warning) for warning in record.warnings]
    return rows


def _noise(record: RunRecord) -> str:
    from workbench.run.facts import paced_blocks
    from workbench.statistics.noise import noise_floor

    floor = noise_floor(paced_blocks(record))
    if floor is None:
        return "not measured"
    return f"identical steps differ by {spread_text(floor)} between two halves of the measurement"


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_plain(value)}" for name, value in values.items() if _said(value))


def _said(value: Any) -> bool:
    return value is not None and value not in ([], {}, "")


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(str(item) for item in value)
    return str(value)
