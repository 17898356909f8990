"""What a blocking call costs: the host code that comes late because the host had to wait.

A thread that waited for the device in a call launches later by as long as it waited. So the idle
time behind the call counts as synchronization until the thread launches anything, or does
something that has a cause of its own, and for no longer than it waited.
"""

from typing import NamedTuple

import numpy as np

from workbench.analysis.evidence import Evidence
from workbench.analysis.gaps import IdleGaps
from workbench.analysis.host_records import SYNCHRONIZATION, HostRecords
from workbench.analysis.idle_pieces import Cuts
from workbench.analysis.nesting import Rows, Times
from workbench.analysis.threads import Timeline
from workbench.trace.table import Trace

NEVER = np.iinfo(np.int64).max


class Waited(NamedTuple):
    """Per gap, the stretch behind the blocking call in which it began; empty where none."""

    start: Times
    end: Times
    call: Rows
    """Row of the blocking call, or -1."""


def waited(evidence: Evidence, gaps: IdleGaps, cuts: Cuts) -> Waited:
    """Find the gaps whose thread was in a blocking call when the device drained.

    Args:
        evidence: The host side.
        gaps: The gaps.
        cuts: For gaps with a launch record, the stretch before the launching call.
    """
    trace, records = evidence.trace, evidence.records
    nothing = np.zeros(len(gaps.start), np.int64)
    found = Waited(nothing.copy(), nothing.copy(), np.full(len(gaps.start), -1, np.int32))
    if SYNCHRONIZATION not in records.own:
        return found
    real = cuts.end > cuts.start
    gap, lane = cuts.gap[real], trace.events.lane[gaps.launch[cuts.gap[real]]]
    until = cuts.end[real]
    for number in np.unique(lane).tolist():
        timeline = evidence.threads.timeline(number, gaps.span)
        here = np.flatnonzero(lane == number)
        drained = gaps.start[gap[here]]
        call = _blocking_call(timeline, records, drained)
        held = np.flatnonzero(call >= 0)
        here, drained, call = here[held], drained[held], call[held]
        begin, end = records.nesting.start[call], records.nesting.end[call]
        limit = np.minimum(end + (drained - begin), until[here])
        limit = np.minimum(limit, _next_launch(evidence, call, limit))
        limit = np.minimum(limit, _next_cause(trace, timeline, records, end, limit))
        behind = gap[here]
        found.start[behind] = end
        found.end[behind] = np.maximum(limit, end)
        found.call[behind] = records.nesting.row[call]
    return found


def _blocking_call(timeline: Timeline, records: HostRecords, at: Times) -> Rows:
    """Position of the outermost blocking call that is open at each instant, its end included."""
    nesting = records.nesting
    found = np.full(len(at), -1, np.int32)
    for instant in (at, at - 1):
        index = np.flatnonzero(found < 0)
        place = timeline.deciding(instant[index])
        while len(index):
            index, place = index[place >= 0], place[place >= 0]
            blocking = records.own[place] == SYNCHRONIZATION
            blocking &= nesting.end[place] >= at[index]
            found[index[blocking]] = place[blocking]
            place = nesting.parent[place]
    return found


def _next_launch(evidence: Evidence, call: Rows, until: Times) -> Times:
    """Start of the next launch on the thread of each call after it ends; ``NEVER`` if later."""
    events, nesting = evidence.trace.events, evidence.records.nesting
    found = np.full(len(call), NEVER, np.int64)
    if not len(call):
        return found
    rows = np.searchsorted(events.ts, (nesting.end[call].min(), until.max()))
    launching = evidence.launching[slice(*np.searchsorted(evidence.launching, rows))]
    for lane in np.unique(nesting.lane[call]).tolist():
        here = np.flatnonzero(nesting.lane[call] == lane)
        starts = np.append(events.ts[launching[events.lane[launching] == lane]], NEVER)
        found[here] = starts[np.searchsorted(starts, nesting.end[call[here]], "left")]
    return found


def _next_cause(
    trace: Trace, timeline: Timeline, records: HostRecords, at: Times, until: Times
) -> Times:
    """Start of the next stretch of each instant's thread that has a cause of its own.

    It is ``NEVER`` where that would be later than the last of the instants ``until``.
    """
    if not len(at):
        return at
    events, overhead = trace.events, records.overhead
    starts, ends = [events.ts[overhead]], [events.ts[overhead] + events.dur[overhead]]
    layer: Timeline | None = timeline
    while layer is not None:
        first, last = layer.at(np.array([at.min(), until.max()])).tolist()
        start, position = layer.start[first : last + 2], layer.position[first : last + 1]
        named = np.flatnonzero(position >= 0)
        named = named[records.cause[position[named]] < SYNCHRONIZATION]
        starts.append(start[named])
        ends.append(np.append(start[1:], NEVER)[named])
        layer = layer.under
    start, end = np.concatenate(starts), np.concatenate(ends)
    order = np.argsort(start, kind="stable")
    start, end = np.append(start[order], NEVER), np.append(end[order], NEVER)
    reach = np.maximum.accumulate(end)
    following = np.minimum(np.searchsorted(reach, at, "right"), len(start) - 1)
    return np.asarray(np.maximum(start[following], at), np.int64)
