"""What the time of a host thread costs when some causes cost nothing.

An autograd thread and the thread that handed over to it work in turn, so they are replayed as one.
Each instant has the cause that the attribution of idle time gives it; a launching call that is no
more than that counts as ``launch``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import CAUSE_CODE, overhead_cause
from workbench.analysis.evidence import Evidence
from workbench.analysis.host_records import HOST_CODE, NOTHING
from workbench.analysis.idle_pieces import FIRST_USE, HOST_CAUSE, climbed
from workbench.analysis.intervals import Spans, contains, covered_until, union
from workbench.analysis.nesting import Rows, Times
from workbench.analysis.ranges import Range
from workbench.analysis.replay.span import Span

LAUNCH = CAUSE_CODE["launch"]
LOADING = CAUSE_CODE["kernel_loading"]
OVERHEAD_CAUSES = ("kernel_loading", "profiler")
"""Causes of overhead that was booked on no thread."""

Masks = NDArray[np.uint32]


def bits(causes: frozenset[str]) -> int:
    """The causes as one number, a bit each."""
    return sum(1 << CAUSE_CODE[cause] for cause in causes)


@dataclass(frozen=True, kw_only=True, eq=False)
class HostThread:
    """One thread in pieces: piece k runs to ``start[k + 1]``, the last for ever."""

    lane: int
    start: Times
    cause: NDArray[np.uint8]
    """Place in ``CAUSES``."""
    mask: Masks
    """The causes that free the piece, a bit each; of a first use none does."""
    row: Rows
    """Row of the record that names the piece, or -1."""
    active: NDArray[np.bool_]
    """Whether the thread is in any record."""

    def at(self, instants: Times) -> Times:
        """For each instant, the number of its piece."""
        return np.asarray(np.maximum(np.searchsorted(self.start, instants, "right") - 1, 0))

    def kept(self, freed: int, gaps: Spans) -> "Kept":
        """The time that is left when the causes of these bits, and these stretches, are free."""
        stop = np.append(self.start[1:], self.start[-1])
        kept = (self.mask & np.uint32(freed)) == 0
        real = kept & (stop > self.start)
        kept[-1] = True
        return Kept(
            thread=self,
            kept=kept,
            before=np.concatenate(([0], np.cumsum(np.where(real, stop - self.start, 0))[:-1])),
            gaps=gaps,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Kept:
    """A thread with some of its time free."""

    thread: HostThread
    kept: NDArray[np.bool_]
    before: Times
    """Time that is left before each piece."""
    gaps: Spans

    def between(self, since: Times, until: Times) -> Times:
        """How much of each stretch is left."""
        length = self._until(until) - self._until(since)
        if len(self.gaps.start):
            length = length - self._in_gaps(since, until)
        return np.asarray(np.maximum(length, 0), np.int64)

    def _until(self, at: Times) -> Times:
        piece = self.thread.at(at)
        inside = np.maximum(at - self.thread.start[piece], 0)
        return np.asarray(self.before[piece] + np.where(self.kept[piece], inside, 0), np.int64)

    def _in_gaps(self, since: Times, until: Times) -> Times:
        """The part of the gaps in each stretch that is not free anyway."""
        bounds = np.sort(np.concatenate((self.thread.start, *self.gaps)))
        left = contains(self.gaps, bounds) & self.kept[self.thread.at(bounds)]
        stop = np.append(bounds[1:], max(int(bounds[-1]), int(until.max(initial=0))))
        spans = union(bounds[left], stop[left])
        return np.asarray(covered_until(spans, until) - covered_until(spans, since), np.int64)


def host_thread(evidence: Evidence, span: Span, lane: int, first_use: int) -> HostThread:
    """One thread over the steps.

    Args:
        evidence: The host side.
        span: The steps.
        lane: The thread; of an autograd thread the one that handed over.
        first_use: Until this instant allocation and kernel loading are a first use.
    """
    lo, hi = span.host_start, max(span.host_end, span.end)
    timeline = evidence.threads.joint(lane, Range(start=lo, end=hi))
    records = evidence.records
    first, last = timeline.at(np.array([lo, hi])).tolist()
    start = np.maximum(timeline.start[first : last + 1], lo)
    position, place = timeline.position[first : last + 1], timeline.range[first : last + 1]
    start, position, place = _cut(start, position, place, _overhead_bounds(evidence, lo, hi))
    known = position >= 0
    code = np.where(known, records.cause[position] if len(records.cause) else NOTHING, NOTHING)
    cause = HOST_CAUSE[code]
    row = np.where(known, records.nesting.row[position] if len(records.cause) else -1, -1)
    user = place >= 0
    row = np.where(~known & user, records.ranges.row[place] if user.any() else -1, row)
    call = _launching_call(evidence, position)
    mask = np.uint32(1) << cause.astype(np.uint32)
    in_call = (call >= 0) & (cause != LOADING)
    plain = in_call & (code >= HOST_CODE["host_operators"])
    cause = np.where(plain, LAUNCH, cause).astype(np.uint8)
    mask[plain] = 0
    mask[in_call] |= np.uint32(1 << LAUNCH)
    row = np.where(plain, call, row)
    cause, mask = _with_overhead(evidence, start, cause, mask)
    mask[(start < first_use) & np.isin(cause, FIRST_USE)] = 0
    return HostThread(
        lane=lane,
        start=start,
        cause=cause,
        mask=mask.astype(np.uint32),
        row=row.astype(np.int32),
        active=known | user,
    )


def _cut(start: Times, position: Rows, place: Rows, cuts: Times) -> tuple[Times, Rows, Rows]:
    if not len(cuts):
        return start, position, place
    bounds = np.sort(np.concatenate((start, cuts[cuts > start[0]])), kind="stable")
    piece = np.searchsorted(start, bounds, "right") - 1
    return bounds, position[piece], place[piece]


def _launching_call(evidence: Evidence, position: Rows) -> Rows:
    """Row of the launching call that each position is or lies in, or -1."""
    nesting = evidence.records.nesting
    launching = np.zeros(len(evidence.trace.events), bool)
    launching[evidence.launching] = True
    holder = climbed(nesting, position, lambda at, _: launching[nesting.row[at]])
    if not len(nesting.row):
        return holder
    return np.where(holder >= 0, nesting.row[holder], -1).astype(np.int32)


def _overhead_bounds(evidence: Evidence, lo: int, hi: int) -> Times:
    events, rows = evidence.trace.events, evidence.records.overhead
    start, end = events.ts[rows], events.end[rows]
    near = (start < hi) & (end > lo)
    return np.unique(np.concatenate((start[near], end[near])))


def _with_overhead(
    evidence: Evidence, start: Times, cause: NDArray[np.uint8], mask: Masks
) -> tuple[NDArray[np.uint8], Masks]:
    """Lay overhead that was booked on no thread over the pieces."""
    trace, rows = evidence.trace, evidence.records.overhead
    if not len(rows):
        return cause, mask
    shown = np.array([overhead_cause(trace.names[code]) for code in trace.events.name[rows]])
    for name in OVERHEAD_CAUSES:
        these = rows[shown == name]
        spans = union(trace.events.ts[these], trace.events.end[these])
        inside = contains(spans, start)
        cause = np.where(inside, CAUSE_CODE[name], cause).astype(np.uint8)
        mask = np.where(inside, np.uint32(1 << CAUSE_CODE[name]), mask).astype(np.uint32)
    return cause, mask
