"""Which work of one stream waited for work of another one.

Where the trace tells the event, the wait is exact. Otherwise a ``StreamWaitEvent`` call before the
launch says that there was a wait, and the work launched before it that ended last is taken. Without
even that, work that starts long after its launch and its stream allow is taken to have waited for
what ended last on the device.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from workbench.analysis.causes import codes_matching
from workbench.analysis.evidence import Evidence
from workbench.analysis.host_records import CALLS
from workbench.analysis.nesting import Times
from workbench.analysis.replay.recorded import ANY, Told
from workbench.analysis.replay.work import Index, Work

WAIT_CALL = r"StreamWaitEvent"
LONGEST_SPACING_NS = 10_000
"""Work that starts later than this after all that is known to hold it waited for something else."""


class Order:
    """Per stream its work in the order of its launches."""

    def __init__(self, work: Work) -> None:
        self._work = work
        known = np.flatnonzero(work.call >= 0)
        known = known[np.lexsort((known, work.call_start[known], work.stream[known]))]
        bounds = np.flatnonzero(np.diff(work.stream[known], prepend=-1, append=-1))
        self.streams: dict[int, Index] = {
            int(work.stream[known[first]]): known[first:last]
            for first, last in pairwise(bounds.tolist())
        }

    def last_before(self, stream: int, launched: Times, ended: Times) -> Index:
        """The last work of a stream that was launched before and had ended by each instant; -1."""
        mine = self.streams.get(stream)
        if mine is None:
            return np.full(len(launched), -1, np.int64)
        work = self._work
        by_launch = np.searchsorted(work.call_start[mine], launched, "left")
        reach = np.maximum.accumulate(work.end[mine])
        by_end = np.searchsorted(reach, ended, "right")
        place = np.minimum(by_launch, by_end) - 1
        return np.where(place >= 0, mine[np.maximum(place, 0)], -1).astype(np.int64)

    def last_launched(self, stream: int, launched: Times) -> Index:
        """The last work of a stream that was launched before each instant, or -1."""
        return self.last_before(stream, launched, np.full(len(launched), np.iinfo(np.int64).max))


class Ground(NamedTuple):
    """What every question about waiting is answered from."""

    evidence: Evidence
    work: Work
    order: Order
    told: Told


class Crossing(NamedTuple):
    """Per piece of work, the work of another stream that it waited for, or -1."""

    source: Index
    told: Times
    """1 where a recorded call says that it waited, 0 where it is concluded from the times."""


def crossings(ground: Ground, ready: Times) -> Crossing:
    """Find the waits between streams.

    Args:
        ground: The host side and the device work.
        ready: Per piece of work, when its launch and its own stream allowed it to start.
    """
    work, order = ground.work, ground.order
    source = np.full(len(work), -1, np.int64)
    said = np.zeros(len(work), np.int64)
    at, lane = _wait_calls(ground.evidence)
    for stream, mine in order.streams.items():
        called = work.call_start[mine]
        wait = _latest_wait(at, lane, called, work.lane[mine])
        waited = np.flatnonzero(wait >= 0)
        for other in order.streams:
            if other == stream or not len(waited):
                continue
            found = order.last_before(other, wait[waited], work.start[mine[waited]])
            _take_later(work, source, mine[waited], found)
    said[source >= 0] = 1
    _take_told(ground, source, said)
    free = (source < 0) & (work.start - ready > LONGEST_SPACING_NS)
    late = np.flatnonzero(free)
    source[late] = _ended_last(work, late, ready)
    return Crossing(source, said)


def _wait_calls(evidence: Evidence) -> tuple[Times, Times]:
    """When and on which thread a stream was told to wait for an event."""
    events = evidence.trace.events
    calls = events.rows(*CALLS)
    calls = calls[np.isin(events.name[calls], codes_matching(evidence.trace, WAIT_CALL))]
    return events.ts[calls], events.lane[calls].astype(np.int64)


def _latest_wait(at: Times, lane: Times, called: Times, launching: Times) -> Times:
    """Per launch, the last wait call of its thread since the launch before it; -1 where none."""
    wait = np.full(len(called), -1, np.int64)
    before = np.concatenate(([np.iinfo(np.int64).min], called[:-1]))
    for number in np.unique(launching).tolist():
        calls = at[lane == number]
        if not len(calls):
            continue
        here = np.flatnonzero(launching == number)
        place = np.searchsorted(calls, called[here], "left") - 1
        found = np.where(place >= 0, calls[np.maximum(place, 0)], -1)
        wait[here] = np.where(found > before[here], found, -1)
    return wait


def _take_later(work: Work, source: Index, index: Index, found: Index) -> None:
    """Keep, for each piece of work, the candidate that ended later."""
    known = np.where(source[index] >= 0, work.end[source[index]], np.iinfo(np.int64).min)
    better = (found >= 0) & (work.end[np.maximum(found, 0)] > known)
    better &= work.start[np.maximum(found, 0)] < work.start[index]
    source[index[better]] = found[better]


def _take_told(ground: Ground, source: Index, said: Times) -> None:
    """Waits whose event the trace tells replace what was concluded."""
    evidence, work, order, told = ground
    events = evidence.trace.events
    number = {int(events.stream[work.row[mine[0]]]): s for s, mine in order.streams.items()}
    exact = np.flatnonzero((told.source != ANY) & (told.stream != ANY) & (told.call >= 0))
    for entry in exact.tolist():
        stream = number.get(int(told.stream[entry]))
        other = number.get(int(told.source[entry]))
        if stream is None or other is None or stream == other:
            continue
        mine = order.streams[stream]
        place = np.searchsorted(work.call_start[mine], events.ts[told.call[entry]], "left")
        if place == len(mine):
            continue
        found = order.last_launched(other, told.until[entry : entry + 1])[0]
        later = mine[place]
        if found >= 0 and work.end[found] <= work.start[later]:
            source[later], said[later] = found, 1


def _ended_last(work: Work, late: Index, ready: Times) -> Index:
    """The work of the same device that ended last between being ready and starting, or -1."""
    found = np.full(len(late), -1, np.int64)
    for device in np.unique(work.device[late]).tolist():
        mine = np.flatnonzero(work.device == device)
        mine = mine[np.argsort(work.end[mine], kind="stable")]
        here = np.flatnonzero(work.device[late] == device)
        place = np.searchsorted(work.end[mine], work.start[late[here]], "right") - 1
        candidate = mine[np.maximum(place, 0)]
        good = (place >= 0) & (work.end[candidate] > ready[late[here]])
        good &= (work.stream[candidate] != work.stream[late[here]]) & (
            work.start[candidate] < work.start[late[here]]
        )
        found[here] = np.where(good, candidate, -1)
    return found
