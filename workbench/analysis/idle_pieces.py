"""Stretches of idle time cut at the records of a thread, each with the evidence that it keeps."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import CAUSE_CODE, HOST_ORDER, overhead_cause
from workbench.analysis.columns import stacked, taken
from workbench.analysis.evidence import Evidence
from workbench.analysis.gaps import IdleGaps
from workbench.analysis.host_records import NOTHING, OPERATOR, PYTHON, HostRecords
from workbench.analysis.intervals import contains, union
from workbench.analysis.kept_pieces import Codes, IdlePieces, Lengths, StepNumbers
from workbench.analysis.nesting import Nesting, Rows, Times
from workbench.analysis.ranges import Range
from workbench.analysis.steps import Steps
from workbench.analysis.threads import Timeline
from workbench.trace.table import Kind, Trace

Wanted = Callable[[Rows, NDArray[np.intp]], NDArray[np.bool_]]
"""For positions, and the number of the question that each one belongs to: is it wanted?"""

HOST_CAUSE = np.array([CAUSE_CODE[cause] for cause in HOST_ORDER], np.uint8)
"""Code in ``CAUSES`` of each code in ``HOST_ORDER``."""
FIRST_USE = (CAUSE_CODE["allocation"], CAUSE_CODE["kernel_loading"])


class Cuts(NamedTuple):
    """Stretches to explain: number of the gap, start and end on the host's clock."""

    gap: NDArray[np.int64]
    start: Times
    end: Times


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """Explained stretches on the host's clock, before they are clipped and merged."""

    gap: NDArray[np.int64]
    start: Times
    end: Times
    cause: Codes
    host: Rows
    """Row of the host record that explains it, or -1."""
    position: Rows
    """Position of the innermost record of the deciding thread, or -1."""
    range: Rows
    """Position of its innermost user range, or -1."""
    unrecorded: NDArray[np.bool_]

    @staticmethod
    def of(
        cuts: Cuts,
        cause: Codes,
        *,
        host: Rows,
        position: Rows | None = None,
        range: Rows | None = None,  # noqa: A002
        unrecorded: NDArray[np.bool_] | None = None,
    ) -> "Parts":
        """Parts that are the cuts; empty cuts give none."""
        nowhere = np.full(len(cuts.gap), -1, np.int32)
        made = Parts(
            gap=cuts.gap,
            start=cuts.start,
            end=cuts.end,
            cause=cause,
            host=host,
            position=nowhere if position is None else position,
            range=nowhere if range is None else range,
            unrecorded=np.zeros(len(cuts.gap), bool) if unrecorded is None else unrecorded,
        )
        return taken(made, np.flatnonzero(cuts.end > cuts.start))

    @staticmethod
    def unknown(cuts: Cuts, *, unrecorded: bool = False) -> "Parts":
        """Parts of which nothing is known, or only that the device was busy with something."""
        size = len(cuts.gap)
        return Parts.of(
            cuts,
            np.full(size, CAUSE_CODE["unknown"], np.uint8),
            host=np.full(size, -1, np.int32),
            unrecorded=np.full(size, unrecorded),
        )

    @staticmethod
    def joined(*parts: "Parts") -> "Parts":
        """All parts, in the order of their time."""
        found = stacked(*parts)
        return taken(found, np.argsort(found.start, kind="stable"))

    def with_cause(self, cause: Codes, *, host: Rows) -> "Parts":
        """The same parts with other causes and explaining rows."""
        return replace(self, cause=cause, host=host)

    def split_at(self, cuts: Times) -> "Parts":
        """The same parts, those that hold a cut strictly inside divided there.

        Args:
            cuts: Sorted instants.
        """
        first = np.searchsorted(cuts, self.start, "right")
        count = np.maximum(np.searchsorted(cuts, self.end, "left") - first, 0)
        if not count.any():
            return self
        of, within = expanded(count + 1)
        divided = taken(self, of)
        start, end = divided.start.copy(), divided.end.copy()
        later, sooner = within > 0, within < count[of]
        start[later] = cuts[first[of[later]] + within[later] - 1]
        end[sooner] = cuts[first[of[sooner]] + within[sooner]]
        return replace(divided, start=start, end=end)

    def split_at_own(self, cut: Times) -> "Parts":
        """The same parts, each divided at the one instant of its gap if that lies inside."""
        at = cut[self.gap]
        inside = np.flatnonzero((at > self.start) & (at < self.end))
        if not len(inside):
            return self
        end, start = self.end.copy(), self.start[inside].copy()
        end[inside] = start[:] = at[inside]
        rest = replace(taken(self, inside), start=start)
        return Parts.joined(replace(self, end=end), rest)


def expanded(count: Times) -> tuple[Times, Times]:
    """For counts per entry: the entry of each element, and its number within the entry."""
    of = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
    return of, within


def host_parts(evidence: Evidence, gaps: IdleGaps, cuts: Cuts) -> Parts:
    """Cut stretches before or in a launching call at the records of the deciding thread."""
    trace, records = evidence.trace, evidence.records
    real = cuts.end > cuts.start
    cuts = Cuts(cuts.gap[real], cuts.start[real], cuts.end[real])
    lane = trace.events.lane[gaps.launch[cuts.gap]]
    found = [Parts.unknown(Cuts(cuts.gap[:0], cuts.start[:0], cuts.end[:0]))]
    for number in np.unique(lane).tolist():
        here = np.flatnonzero(lane == number)
        asked = Cuts(cuts.gap[here], cuts.start[here], cuts.end[here])
        timeline: Timeline | None = evidence.threads.timeline(number, gaps.span)
        while timeline is not None and len(asked.gap):
            cut, position, place = _cut(timeline, asked)
            handed = (position < 0) & (place < 0) & (timeline.under is not None)
            kept = np.flatnonzero(~handed)
            found.append(
                _shown(records, Cuts(*(c[kept] for c in cut)), position[kept], place[kept])
            )
            asked = Cuts(*(c[handed] for c in cut))
            timeline = timeline.under
    return _with_overhead(trace, Parts.joined(*found), records)


def _cut(timeline: Timeline, asked: Cuts) -> tuple[Cuts, Rows, Rows]:
    """Cut stretches at the pieces of a timeline: the cuts, and what is open in each."""
    first = timeline.at(asked.start)
    of, within = expanded(np.searchsorted(timeline.start, asked.end, "left") - first)
    piece = first[of] + within
    start = np.maximum(timeline.start[piece], asked.start[of])
    end = asked.end[of]
    more = np.flatnonzero(piece + 1 < len(timeline.start))
    end[more] = np.minimum(end[more], timeline.start[piece[more] + 1])
    return Cuts(asked.gap[of], start, end), timeline.position[piece], timeline.range[piece]


def _shown(records: HostRecords, cuts: Cuts, position: Rows, place: Rows) -> Parts:
    """Parts with the causes that the open records show."""
    code = np.where(position >= 0, _at(records.cause, position), NOTHING).astype(np.uint8)
    cause = HOST_CAUSE[code]
    return Parts.of(
        cuts,
        cause,
        host=_explaining(records, position, place, code),
        position=position,
        range=place,
        unrecorded=cause == CAUSE_CODE["unknown"],
    )


def _explaining(records: HostRecords, position: Rows, place: Rows, code: Codes) -> Rows:
    """Row of the nearest record that shows the code; for unnamed host code, what is open at all."""
    nesting = records.nesting
    holder = climbed(nesting, position, lambda at, index: records.own[at] == code[index])
    holder = np.where(code == NOTHING, position, holder)
    row = np.where(holder >= 0, _at(nesting.row, holder), -1)
    user = np.where(place >= 0, _at(records.ranges.row, place), -1)
    return np.where((row < 0) & (code == NOTHING), user, row)


def climbed(nesting: Nesting, position: Rows, wanted: Wanted) -> Rows:
    """The nearest record, from each position upwards, that is wanted; -1 where none is."""
    found = np.full(len(position), -1, np.int32)
    index = np.flatnonzero(position >= 0)
    at = position[index]
    while len(index):
        good = wanted(at, index)
        found[index[good]] = at[good]
        index, at = index[~good], nesting.parent[at[~good]]
        index, at = index[at >= 0], at[at >= 0]
    return found


def _with_overhead(trace: Trace, parts: Parts, records: HostRecords) -> Parts:
    """Lay the profiler's overhead over the parts, where it was booked on no thread."""
    events, rows = trace.events, records.overhead
    cause = np.array([overhead_cause(trace.names[code]) for code in events.name[rows]], object)
    host_code = {"kernel_loading": CAUSE_CODE["kernel_loading"], "profiler": CAUSE_CODE["profiler"]}
    for name, code in host_code.items():
        these = rows[cause == name]
        if not len(these):
            continue
        spans = union(events.ts[these], events.end[these])
        parts = parts.split_at(np.sort(np.concatenate(spans)))
        inside = contains(spans, parts.start)
        latest = these[np.maximum(np.searchsorted(events.ts[these], parts.start, "right") - 1, 0)]
        parts = parts.with_cause(
            np.where(inside, code, parts.cause).astype(np.uint8),
            host=np.where(inside, latest, parts.host),
        )
    return parts


def described(
    trace: Trace,
    parts: Parts,
    gaps: IdleGaps,
    span: Range,
    *,
    steps: Steps | None,
    evidence: Evidence | None,
    launch_of: Rows,
) -> IdlePieces:
    """Clip the parts to a span of the host's clock, add their evidence, and merge equal ones."""
    start, end = np.maximum(parts.start, span.start), np.minimum(parts.end, span.end)
    real = np.flatnonzero(end > start)
    parts, start, end = taken(parts, real), start[real], end[real]
    operator, source = _places(parts, evidence)
    columns: dict[str, NDArray[Any]] = {
        "cause": parts.cause,
        "host": parts.host,
        "operator": operator,
        "source": source,
        "unrecorded": parts.unrecorded,
    }
    alone = np.ones(len(start), bool)
    alone[1:] = (start[1:] != end[:-1]) | (np.diff(parts.gap) != 0)
    begins = alone.copy()
    for column in columns.values():
        begins[1:] |= column[1:] != column[:-1]
    first, of_gap = np.flatnonzero(begins), np.flatnonzero(alone)
    last = np.append(first[1:], len(start))[: len(first)] - 1
    count = np.diff(np.searchsorted(first, of_gap), append=len(first)).astype(np.int32)
    gap = parts.gap[of_gap]
    step = _steps_of(trace, gaps.launch[gap], steps)
    kept = {name: column[first] for name, column in columns.items()}
    first_use = np.isin(kept["cause"], FIRST_USE)
    if steps is not None and steps.numbers:
        first_use &= np.repeat(step == steps.numbers[0], count)
    else:
        first_use[:] = False
    return IdlePieces(
        gap_start=start[of_gap],
        gap_pieces=count,
        gap_work=gaps.next_work[gap],
        gap_step=step,
        length=_short(end[last] - start[first]),
        first_use=first_use,
        launch_of=launch_of,
        **kept,
    )


def _short(length: Times) -> Lengths:
    return length.astype(np.int32) if length.max(initial=0) <= np.iinfo(np.int32).max else length


def _places(parts: Parts, evidence: Evidence | None) -> tuple[Rows, Rows]:
    """Rows of the innermost operator, or else user range, and of the innermost Python record."""
    nowhere = np.full(len(parts.gap), -1, np.int32)
    if evidence is None:
        return nowhere, nowhere
    records, nesting = evidence.records, evidence.records.nesting
    operator = climbed(nesting, parts.position, lambda at, _: records.own[at] == OPERATOR)
    user = np.where(parts.range >= 0, _at(records.ranges.row, parts.range), -1)
    operator = np.where(operator >= 0, _at(nesting.row, operator), user)
    if PYTHON not in records.own:
        return operator, nowhere
    python = evidence.trace.events.kind[nesting.row] == Kind.PYTHON
    source = climbed(nesting, parts.position, lambda at, _: python[at])
    return operator, np.where(source >= 0, _at(nesting.row, source), -1)


def _steps_of(trace: Trace, launch: Rows, steps: Steps | None) -> StepNumbers:
    """Number of the step in which each call began, or -1; as short as the numbers allow."""
    if steps is None or not len(steps) or not len(trace.events):
        return np.full(len(launch), -1, np.int32)
    index = steps.step_of(trace.events.ts[np.maximum(launch, 0)])
    kind = np.int16 if max(steps.numbers) <= np.iinfo(np.int16).max else np.int32
    numbers = np.array(steps.numbers, kind)
    return np.where((launch >= 0) & (index >= 0), numbers[np.maximum(index, 0)], kind(-1))


def _at(values: NDArray[Any], index: Rows) -> NDArray[Any]:
    """Values at an index that may be -1; there anything is given."""
    if not len(values):
        return np.zeros(len(index), values.dtype)
    return values[np.maximum(index, 0)]
