"""The graph of waits of some steps, with the one wait of each join that was decisive.

A join is an instant at which something goes on once all that it waits for has come: every start of
device work, and every instant at which a host thread goes on after a wait. What lies between joins
costs time: host code on a thread, device work, spacing on a device. Of the waits of each join the
one that came last is decisive; it carries the measured spacing, so that the unchanged replay is
exact. The others carry none: they only keep the order.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import CAUSE_CODE
from workbench.analysis.columns import stacked, taken
from workbench.analysis.evidence import Evidence
from workbench.analysis.nesting import Times
from workbench.analysis.replay.host import LAUNCH, HostThread, host_thread
from workbench.analysis.replay.recorded import told_waits
from workbench.analysis.replay.span import Span
from workbench.analysis.replay.streams import Crossing, Ground, Order, crossings
from workbench.analysis.replay.waits import (
    HostJoins,
    borders,
    device_waits,
    full_queues,
    handovers,
    without_first_use,
)
from workbench.analysis.replay.work import Index, Marks, Work, work_of
from workbench.analysis.steps import Steps
from workbench.analysis.unrecorded_work import UNRECORDED_NS

KERNEL_GAP = CAUSE_CODE["kernel_gap"]
UNKNOWN = CAUSE_CODE["unknown"]


class EdgeKind(IntEnum):
    """What lies between two joins."""

    HOST = 0
    """Host code on a thread, then a lag."""
    WORK = 1
    """The whole device work that the first join starts, then a lag."""
    OVERLAP = 2
    """The part of that work until the next one began beside it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Edges:
    """Columns of equal length, sorted so that no edge comes before one that it depends on."""

    source: Index
    target: Index
    kind: NDArray[np.uint8]
    lane: Index
    """Thread of HOST edges, else -1."""
    since: Times
    until: Times
    """Host code between these counts (HOST), or the work between them (WORK, OVERLAP)."""
    lag: Times
    cause: NDArray[np.uint8]
    """Place in ``CAUSES`` of the lag."""
    cut: NDArray[np.uint32]
    """The causes that, gone, take the whole edge with them, a bit each."""
    decisive: Marks

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, kw_only=True, eq=False)
class Graph:
    """Joins 0 to ``len(work) - 1`` are the starts of the work, the others those of the host."""

    evidence: Evidence
    span: Span
    work: Work
    host: HostJoins
    threads: dict[int, HostThread]
    edges: Edges
    time: Times
    """When each join was recorded."""
    inferred: int
    """Waits between streams that were concluded from times alone."""
    last: int
    """The work of the steps that ended last."""
    borders: tuple[int, int]
    """The joins at which the loop's thread begins and ends the steps."""


def build_graph(evidence: Evidence, steps: Steps, span: Span) -> Graph | None:
    """The graph of the chosen steps; ``None`` when none of their work was joined to its launch."""
    work = work_of(evidence, span)
    own = np.flatnonzero((work.call >= 0) & ~work.fixed)
    if not len(own):
        return None
    first_use = int(steps.end[0])
    threads, host = _host_side(evidence, steps, span, work, first_use)
    joined = HostJoins.joined(*host)
    ground = Ground(evidence, work, Order(work), told_waits(evidence))
    waits = device_waits(ground, span)
    queues = full_queues(evidence, span, work)
    held = np.isin(waits.lane, list(threads)) & ~np.isin(waits.row, queues.row)
    waits = taken(waits, held)
    joined = without_first_use(HostJoins.joined(joined, waits, queues), first_use)
    called = _before_call(evidence, joined, work)
    ready = _ready(work, called)
    crossing = crossings(ground, ready.max(axis=0))
    edges = stacked(
        *_work_edges(work, joined, called, ready, crossing),
        *_host_edges(joined, work, evidence.threads.caller(steps.lane)),
    )
    time = np.concatenate((work.start, joined.time))
    return Graph(
        evidence=evidence,
        span=span,
        work=work,
        host=joined,
        threads=threads,
        edges=_sorted(edges, time),
        time=time,
        inferred=int(((crossing.source >= 0) & (crossing.told == 0)).sum()),
        last=int(own[np.argmax(work.end[own])]),
        borders=_borders(joined, len(work), evidence.threads.caller(steps.lane), span),
    )


def _borders(host: HostJoins, base: int, loop: int, span: Span) -> tuple[int, int]:
    first, last = np.searchsorted(host.lane, (loop, loop + 1))
    time = host.time[first:last]
    begin = np.searchsorted(time, span.loop_start, "right") - 1
    end = np.searchsorted(time, span.host_end, "left")
    return int(base + first + begin), int(base + first + end)


def _host_side(
    evidence: Evidence, steps: Steps, span: Span, work: Work, first_use: int
) -> tuple[dict[int, HostThread], list[HostJoins]]:
    """The threads that launch, the loop's among them, and where each begins."""
    loop = evidence.threads.caller(steps.lane)
    launched = (work.call >= 0) & ~work.fixed
    lanes = np.unique(work.lane[launched]).tolist()
    callers = {lane: evidence.threads.caller(int(lane)) for lane in lanes}
    threads = {
        lane: host_thread(evidence, span, lane, first_use) for lane in {loop, *callers.values()}
    }
    joins = [borders(loop, span)]
    for lane, thread in threads.items():
        if lane != loop:
            its = launched & np.isin(work.lane, [each for each in callers if callers[each] == lane])
            joins.append(handovers(thread, np.sort(work.call_start[its])))
    return threads, joins


def _before_call(evidence: Evidence, host: HostJoins, work: Work) -> Index:
    """Per piece of work, the host join on its thread that came last before its call, or -1."""
    found = np.full(len(work), -1, np.int64)
    for lane in np.unique(work.lane[work.lane >= 0]).tolist():
        caller = evidence.threads.caller(int(lane))
        first, last = np.searchsorted(host.lane, (caller, caller + 1))
        here = np.flatnonzero((work.lane == lane) & ~work.fixed)
        place = np.searchsorted(host.time[first:last], work.call_start[here], "right") - 1
        found[here] = np.where(place >= 0, place + first, -1)
    return found


def _ready(work: Work, called: Index) -> Times:
    """When the launch (first row) and the own stream (second row) allowed each to start."""
    never = np.iinfo(np.int64).min
    returned = np.where(work.blocking | work.later, work.call_start, work.call_end)
    launch = np.where(called >= 0, np.minimum(returned, work.start), never)
    before = work.before >= 0
    stream = np.where(before, np.minimum(work.end[work.before], work.start), never)
    return np.stack((launch, stream))


def _work_edges(
    work: Work, host: HostJoins, called: Index, ready: Times, crossing: Crossing
) -> list[Edges]:
    """What every start of work waits for: its call, its stream, another stream."""
    base = len(work)
    free = ~work.fixed
    other = crossing.source
    there = np.where(other >= 0, work.end[other], np.iinfo(np.int64).min)
    last = np.maximum(ready.max(axis=0), there)
    by_other = (other >= 0) & (there > ready.max(axis=0))
    by_stream = ~by_other & (work.before >= 0) & (ready[1] == last)
    by_launch = ~by_other & ~by_stream & (called >= 0)
    lag = work.start - last
    launch_lag = np.where(lag > UNRECORDED_NS, UNKNOWN, LAUNCH)
    gap_lag = np.where(lag > UNRECORDED_NS, UNKNOWN, KERNEL_GAP)
    made = []
    index = np.flatnonzero(free & (called >= 0))
    decisive = by_launch[index]
    made.append(
        _edges(
            source=called[index] + base,
            target=index,
            kind=EdgeKind.HOST,
            lane=host.lane[called[index]],
            since=host.time[called[index]],
            until=np.where(decisive, ready[0][index], np.minimum(work.call_start, ready[0])[index]),
            lag=np.where(decisive, lag[index], 0),
            cause=launch_lag[index],
            decisive=decisive,
        )
    )
    for source, chosen in ((work.before, by_stream), (other, by_other)):
        index = np.flatnonzero(free & (source >= 0))
        earlier = source[index]
        over = work.end[earlier] > work.start[index]
        decisive = chosen[index]
        made.append(
            _edges(
                source=earlier,
                target=index,
                kind=np.where(over, EdgeKind.OVERLAP, EdgeKind.WORK),
                since=work.start[earlier],
                until=np.minimum(work.end[earlier], work.start[index]),
                lag=np.where(decisive, lag[index], 0),
                cause=gap_lag[index],
                decisive=decisive,
            )
        )
    return made


def _host_edges(host: HostJoins, work: Work, loop: int) -> list[Edges]:
    """What every join of a thread waits for: the thread itself, the device, the loop's thread."""
    base = len(work)
    index = np.arange(len(host))
    follows = index[1:][np.diff(host.lane) == 0]
    chain = _edges(
        source=follows - 1 + base,
        target=follows + base,
        kind=EdgeKind.HOST,
        lane=host.lane[follows],
        since=host.time[follows - 1],
        until=host.begin[follows],
        decisive=~host.waited[follows] & ~host.handed[follows],
    )
    waits = np.flatnonzero(host.work >= 0)
    earlier = host.work[waits]
    waited = host.waited[waits]
    device = _edges(
        source=earlier,
        target=waits + base,
        kind=EdgeKind.WORK,
        since=work.start[earlier],
        until=work.end[earlier],
        lag=np.where(waited, host.time[waits] - work.end[earlier], 0),
        cause=host.cause[waits],
        cut=host.mask[waits],
        decisive=waited,
    )
    handed = np.flatnonzero(host.handed)
    first, last = np.searchsorted(host.lane, (loop, loop + 1))
    place = np.searchsorted(host.time[first:last], host.time[handed], "right") - 1 + first
    hands = _edges(
        source=np.maximum(place, first) + base,
        target=handed + base,
        kind=EdgeKind.HOST,
        lane=np.full(len(handed), loop),
        since=host.time[np.maximum(place, first)],
        until=host.time[handed],
        decisive=np.ones(len(handed), bool),
    )
    return [chain, device, hands]


def _edges(
    *,
    source: Index,
    target: Index,
    kind: EdgeKind | NDArray[np.integer[Any]],
    since: Times,
    until: Times,
    decisive: Marks,
    lane: Index | None = None,
    lag: Times | None = None,
    cause: NDArray[np.integer[Any]] | None = None,
    cut: NDArray[np.uint32] | None = None,
) -> Edges:
    count = len(source)
    return Edges(
        source=source.astype(np.int64),
        target=target.astype(np.int64),
        kind=np.broadcast_to(np.asarray(kind, np.uint8), count).copy(),
        lane=np.full(count, -1, np.int64) if lane is None else lane.astype(np.int64),
        since=since.astype(np.int64),
        until=until.astype(np.int64),
        lag=np.zeros(count, np.int64) if lag is None else lag.astype(np.int64),
        cause=np.full(count, UNKNOWN, np.uint8) if cause is None else cause.astype(np.uint8),
        cut=np.zeros(count, np.uint32) if cut is None else cut,
        decisive=decisive,
    )


def _sorted(edges: Edges, time: Times) -> Edges:
    """Edges in an order in which the replay may take them; one against the time is left out."""
    rank = np.empty(len(time), np.int64)
    rank[np.lexsort((np.arange(len(time)), time))] = np.arange(len(time))
    forward = rank[edges.source] < rank[edges.target]
    kept = np.flatnonzero(forward)
    return taken(edges, kept[np.argsort(rank[edges.target[kept]], kind="stable")])
