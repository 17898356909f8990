"""Where host threads wait: for the device, for a full queue, and for being handed work.

A blocking call is taken to wait for the last work that was launched on a stream before it, if that
ended inside the call; where the trace tells the stream or the event, for that alone.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import CAUSE_CODE, codes_matching
from workbench.analysis.clocks import LEAST_DELAY_NS
from workbench.analysis.columns import stacked, taken
from workbench.analysis.evidence import Evidence
from workbench.analysis.host_records import SYNCHRONIZATION
from workbench.analysis.idle_pieces import FIRST_USE, HOST_CAUSE, climbed
from workbench.analysis.nesting import Times
from workbench.analysis.replay.host import LAUNCH, HostThread
from workbench.analysis.replay.recorded import ANY, Told
from workbench.analysis.replay.span import Span
from workbench.analysis.replay.streams import Ground
from workbench.analysis.replay.work import Index, Marks, Work
from workbench.analysis.unrecorded_work import UNRECORDED_NS

FREE_CALL = r"^(cuda|hip|mu|musa|cu)(Mem)?Free(Host)?(_v2)?$"
"""Calls that release memory wait for the device."""
EVENT_CALL = re.compile(r"Event", re.IGNORECASE)
FULL_QUEUE = 512
"""A launch into a queue as full as this waits until there is room (CUDA holds 1024)."""
BLOCKED_LAUNCH_NS = 50_000
"""Only a launching call longer than this has waited for room in the queue."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HostJoins:
    """The instants at which a thread goes on after waiting, sorted by thread and time."""

    lane: Index
    time: Times
    begin: Times
    """Until here the thread's own time counts, then it waits."""
    work: Index
    """What it waits for, or -1."""
    waited: Marks
    """It went on because the work had ended."""
    cause: NDArray[np.uint8]
    """Place in ``CAUSES`` of the wait."""
    mask: NDArray[np.uint32]
    """The causes that, gone, take the wait with them, a bit each."""
    handed: Marks
    """It went on because the loop's thread had come so far."""
    row: Index
    """Row of the call, or -1."""

    def __len__(self) -> int:
        return len(self.time)

    @staticmethod
    def joined(*parts: "HostJoins") -> "HostJoins":
        """All of them, sorted by thread and time."""
        found = stacked(*parts)
        return taken(found, np.lexsort((found.time, found.lane)))


def borders(lane: int, span: Span) -> HostJoins:
    """Where the loop's thread begins, as it was recorded, and the borders of its steps."""
    time = np.array([span.host_start, span.loop_start, span.host_end])
    return _plain(np.full(len(time), lane), time, time)


def handovers(thread: HostThread, called: Times) -> HostJoins:
    """Where another thread begins to work that launches or waits: it was handed the work.

    Args:
        thread: The other thread.
        called: Sorted instants of its launches and blocking calls.
    """
    active = thread.active
    begins = np.flatnonzero(active & ~np.concatenate(([False], active[:-1])))
    ends = np.flatnonzero(active & ~np.concatenate((active[1:], [False])))
    stop = np.append(thread.start[1:], np.iinfo(np.int64).max)[ends]
    start = thread.start[begins]
    used = np.searchsorted(called, stop, "left") > np.searchsorted(called, start, "left")
    start, stop = start[used], stop[used]
    before = np.concatenate((start[:1], stop[:-1]))[: len(start)]
    made = _plain(np.full(len(start), thread.lane), start, before)
    made.handed[:] = True
    return made


def device_waits(ground: Ground, span: Span) -> HostJoins:
    """Every call of the steps that waits, or could have waited, for the device."""
    evidence, work = ground.evidence, ground.work
    records, nesting, events = evidence.records, evidence.records.nesting, evidence.trace.events
    blocks = records.own == SYNCHRONIZATION
    blocks |= np.isin(events.name[nesting.row], codes_matching(evidence.trace, FREE_CALL))
    inside = (nesting.start >= span.host_start) & (nesting.start < span.host_end)
    position = np.flatnonzero(blocks & inside).astype(np.int32)
    outer = climbed(nesting, nesting.parent[position], lambda at, _: blocks[at])
    position = position[outer < 0]
    begin, end = nesting.start[position], nesting.end[position]
    row = nesting.row[position].astype(np.int64)
    found = _awaited(ground, row, begin, end)
    done = np.where(found >= 0, work.end[np.maximum(found, 0)], -1)
    waited = (found >= 0) & (done > begin)
    cause = HOST_CAUSE[records.cause[position]] if len(position) else np.empty(0, np.uint8)
    mask = np.uint32(1) << cause.astype(np.uint32)
    unseen = waited & (end - done > UNRECORDED_NS)
    cause[unseen], mask[unseen] = CAUSE_CODE["unknown"], 0
    return HostJoins(
        lane=_callers(evidence, nesting.lane[position]),
        time=end,
        begin=np.where(waited, begin, end),
        work=found,
        waited=waited,
        cause=cause,
        mask=mask,
        handed=np.zeros(len(position), bool),
        row=row,
    )


def full_queues(evidence: Evidence, span: Span, work: Work) -> HostJoins:
    """Launching calls that waited for room in a full queue."""
    events = evidence.trace.events
    calls = np.unique(work.call[(work.call >= 0) & ~work.fixed & ~work.blocking])
    begin, end = events.ts[calls], events.end[calls]
    usual = float(np.median(end - begin)) if len(calls) else 0.0
    launched, ended = np.sort(work.call_start), np.sort(work.end)
    waiting = np.searchsorted(launched, begin) - np.searchsorted(ended, begin)
    blocked = (end - begin > max(BLOCKED_LAUNCH_NS, 20 * usual)) & (waiting >= FULL_QUEUE)
    calls, begin, end = calls[blocked], begin[blocked], end[blocked]
    by_end = np.argsort(work.end, kind="stable")
    place = np.searchsorted(work.end[by_end], end, "right") - 1
    found = by_end[np.maximum(place, 0)]
    good = (place >= 0) & (work.end[found] > begin) & (work.call_start[found] < begin)
    calls, begin, end, found = calls[good], begin[good], end[good], found[good]
    return HostJoins(
        lane=_callers(evidence, events.lane[calls]),
        time=end,
        begin=np.minimum(begin + int(usual), end),
        work=found.astype(np.int64),
        waited=np.ones(len(calls), bool),
        cause=np.full(len(calls), LAUNCH, np.uint8),
        mask=np.full(len(calls), 1 << LAUNCH, np.uint32),
        handed=np.zeros(len(calls), bool),
        row=calls.astype(np.int64),
    )


def without_first_use(joins: HostJoins, first_use: int) -> HostJoins:
    """Waits of a first use stay, whatever else is gone."""
    joins.mask[(joins.time <= first_use) & np.isin(joins.cause, FIRST_USE)] = 0
    return joins


def _plain(lane: Index, time: Times, begin: Times) -> HostJoins:
    count = len(time)
    return HostJoins(
        lane=lane.astype(np.int64),
        time=time.astype(np.int64),
        begin=begin.astype(np.int64),
        work=np.full(count, -1, np.int64),
        waited=np.zeros(count, bool),
        cause=np.full(count, CAUSE_CODE["unknown"], np.uint8),
        mask=np.zeros(count, np.uint32),
        handed=np.zeros(count, bool),
        row=np.full(count, -1, np.int64),
    )


def _callers(evidence: Evidence, lane: NDArray[np.int32]) -> Index:
    """The thread that stands for each lane."""
    lanes, index = np.unique(lane, return_inverse=True)
    callers = np.array([evidence.threads.caller(int(each)) for each in lanes], np.int64)
    return callers[index] if len(lanes) else np.empty(0, np.int64)


def _awaited(ground: Ground, row: Index, begin: Times, end: Times) -> Index:
    """The work that each blocking call waits for, or -1."""
    evidence, work, order, told = ground
    found = np.full(len(row), -1, np.int64)
    limit = end + LEAST_DELAY_NS
    stream, source, until = _told_of(told, row, begin)
    events = evidence.trace.events
    own = _own_work(work, row)
    for number, mine in order.streams.items():
        name = int(events.stream[work.row[mine[0]]])
        asked = ((stream == ANY) | (stream == name)) & ((source == ANY) | (source == name))
        asked &= own < 0
        candidate = order.last_launched(number, until)
        fits = asked & (candidate >= 0) & (work.end[np.maximum(candidate, 0)] <= limit)
        known = np.where(found >= 0, work.end[np.maximum(found, 0)], -1)
        fits &= work.end[np.maximum(candidate, 0)] > known
        found[fits] = candidate[fits]
    event = (own < 0) & _named_event(ground, row)
    found = _of_events(ground, event, begin, limit, found)
    copied = (own >= 0) & (work.end[np.maximum(own, 0)] <= limit)
    found = np.where(copied, own, found)
    return np.where((found >= 0) & (work.start[np.maximum(found, 0)] < end), found, -1)


def _told_of(told: Told, row: Index, begin: Times) -> tuple[Index, Index, Times]:
    stream = np.full(len(row), ANY, np.int64)
    source, until = stream.copy(), begin.copy()
    place = {int(call): entry for entry, call in enumerate(told.call.tolist()) if call >= 0}
    for index, call in enumerate(row.tolist()):
        entry = place.get(call)
        if entry is None:
            continue
        source[index] = told.source[entry]
        if told.source[entry] == ANY:
            stream[index] = told.stream[entry]
        else:
            until[index] = min(int(begin[index]), int(told.until[entry]) + 1)
    return stream, source, until


def _own_work(work: Work, row: Index) -> Index:
    """The last work that each call launched itself, or -1."""
    order = np.argsort(work.call, kind="stable")
    place = np.searchsorted(work.call[order], row, "right") - 1
    found = order[np.maximum(place, 0)]
    good = (place >= 0) & (work.call[found] == row)
    return np.where(good, found, -1).astype(np.int64)


def _named_event(ground: Ground, row: Index) -> Marks:
    names, name = ground.evidence.trace.names, ground.evidence.trace.events.name[row]
    return np.array([bool(EVENT_CALL.search(names[code])) for code in name], bool)


def _of_events(ground: Ground, event: Marks, begin: Times, limit: Times, found: Index) -> Index:
    """An event may be older than the last launch: take what ended last inside the call."""
    work, found = ground.work, found.copy()
    known = np.where(found >= 0, work.end[np.maximum(found, 0)], -1)
    open_ = np.flatnonzero(event & (known <= begin))
    for number in ground.order.streams:
        candidate = ground.order.last_before(number, begin[open_], limit[open_])
        ended = work.end[np.maximum(candidate, 0)]
        before = np.where(found[open_] >= 0, work.end[np.maximum(found[open_], 0)], -1)
        better = (candidate >= 0) & (ended > begin[open_]) & (ended > before)
        found[open_[better]] = candidate[better]
    return found
