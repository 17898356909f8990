"""Which record decides what a thread is doing, instant by instant.

A thread is cut at all its records, and the innermost one decides. In backward two threads share
the work: the autograd thread runs the nodes while the thread that called ``backward()`` waits for
it. While an autograd thread is in no record, the thread that handed over decides, unless the
engine's own code runs between two nodes; while that one waits, the autograd thread decides. Any
other thread beside the loop, such as one that sends batches ahead, waits for the loop while it is
in no record: then the loop's thread decides.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workbench.analysis import causes
from workbench.analysis.host_records import CALLS, HOST_KINDS, OPERATOR, HostRecords
from workbench.analysis.intervals import Spans, contains, joined, union
from workbench.analysis.launches import Launches
from workbench.analysis.nesting import Nesting, Rows, Times, distinct, innermost, on_lane
from workbench.analysis.ranges import Range
from workbench.analysis.steps import Steps
from workbench.trace.table import Kind, Trace

BEGINNING = np.iinfo(np.int64).min
EVER = Range(start=BEGINNING, end=np.iinfo(np.int64).max)
STARTING = (*HOST_KINDS, Kind.OTHER)
"""Kinds of records by whose start a thread shows that it does not wait."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline:
    """A thread in pieces: piece k runs from ``start[k]`` to ``start[k + 1]``, the last for ever.

    It tells nothing before ``start[0]`` nor beyond the span that it was asked for.
    """

    start: Times
    position: Rows
    """Position of the deciding record, -1 where none is open."""
    range: Rows
    """Position of the innermost user range of the deciding thread, or -1."""
    under: "Timeline | None" = None
    """What decides where neither a record nor a range of this one is open."""

    def at(self, instants: Times) -> Times:
        """For each instant, the number of its piece."""
        return np.asarray(np.searchsorted(self.start, instants, "right") - 1, np.int64)

    def deciding(self, instants: Times) -> Rows:
        """Position of the record that decides at each instant, or -1."""
        piece = self.at(instants)
        position = self.position[piece]
        if self.under is not None:
            asked = np.flatnonzero((position < 0) & (self.range[piece] < 0))
            position[asked] = self.under.deciding(instants[asked])
        return position

    def merged(self) -> "Timeline":
        """The same without cuts at which nothing changes: those of a partner while unasked."""
        first = np.ones(len(self.start), bool)
        first[1:] = self.position[1:] != self.position[:-1]
        first[1:] |= self.range[1:] != self.range[:-1]
        return Timeline(
            start=self.start[first], position=self.position[first], range=self.range[first]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Backward:
    """One autograd thread and the thread that handed over to it."""

    lane: int
    caller: int
    nodes: Spans
    first: NDArray[np.intp]
    """Position of the node that begins each of the spans."""


class Threads:
    """The deciding timelines of the threads of one trace, those of the latest span kept.

    Of a few gaps at a time only what the threads did around them is held.
    """

    def __init__(
        self, trace: Trace, records: HostRecords, launches: Launches, steps: Steps | None
    ) -> None:
        self.records = records
        self._trace = trace
        self._backward = _backward_threads(trace, records, steps)
        self._loop = (
            _launching_lane(trace, launches, self._backward) if steps is None else steps.lane
        )
        self._span = EVER
        self._plain: dict[int, Timeline] = {}
        self._deciding: dict[int, Timeline] = {}
        self._starts: dict[int, Times] = {}
        self._engines: dict[int, Spans] = {}
        self._waiting: dict[int, Spans] = {}

    def timeline(self, lane: int, span: Range = EVER) -> Timeline:
        """What decides for a thread, whether its own record or that of its partner."""
        self._look_at(span)
        if lane not in self._deciding:
            self._deciding[lane] = self._made(lane)
        return self._deciding[lane]

    def joint(self, lane: int, span: Range = EVER) -> Timeline:
        """A thread and the autograd threads that it waits for, without what others do meanwhile."""
        self._look_at(span)
        own = self._own(lane)
        for pair in self._backward:
            if pair.caller == lane:
                other = self.timeline(pair.lane, span)
                own = _replaced(own, other, self._waits(pair), span)
        return own

    def caller(self, lane: int) -> int:
        """The thread that handed over to an autograd thread; any other thread is its own."""
        return next((pair.caller for pair in self._backward if pair.lane == lane), lane)

    def _look_at(self, span: Range) -> None:
        if span != self._span:
            self._span = span
            self._plain.clear()
            self._deciding.clear()

    def _made(self, lane: int) -> Timeline:
        for pair in self._backward:
            if pair.lane == lane:
                return self._of_autograd(pair)
        loop = self._loop_of(lane)
        under = None if loop is None else self.timeline(loop, self._span)
        return replace(self.joint(lane, self._span), under=under)

    def _loop_of(self, lane: int) -> int | None:
        """The thread of the loop, for another one that does nothing by itself."""
        if self._loop is None or lane == self._loop:
            return None
        if any(pair.caller == lane for pair in self._backward):
            return None
        lanes = self._trace.lanes
        return self._loop if lanes[lane].pid == lanes[self._loop].pid else None

    def _own(self, lane: int) -> Timeline:
        if lane not in self._plain:
            self._plain[lane] = _plain_timeline(self.records, lane, self._span)
        return self._plain[lane]

    def _of_autograd(self, pair: Backward) -> Timeline:
        """Its own records; between two nodes the engine; otherwise the caller decides."""
        own, caller = self._own(pair.lane), self._own(pair.caller)
        start = _instants(own.start, caller.start)
        mine, other = own.at(start), caller.at(start)
        position, place = own.position[mine], own.range[mine]
        away = position < 0
        between = away & contains(self._engine(pair), start)
        before = np.searchsorted(pair.nodes.start, start, "right") - 1
        position = np.where(between, pair.first[np.maximum(before, 0)], position).astype(np.int32)
        handed = away & ~between
        position = np.where(handed, caller.position[other], position)
        place = np.where(handed & (place < 0), caller.range[other], place)
        return Timeline(start=start, position=position, range=place).merged()

    def _engine(self, pair: Backward) -> Spans:
        """The stretches between two nodes in which the caller began nothing."""
        if pair.lane not in self._engines:
            after, before = pair.nodes.end[:-1], pair.nodes.start[1:]
            quiet = self._begun(pair.caller, after) == self._begun(pair.caller, before)
            self._engines[pair.lane] = Spans(after[quiet], before[quiet])
        return self._engines[pair.lane]

    def _waits(self, pair: Backward) -> Spans:
        """While nodes follow each other and the caller begins nothing, it waits in backward().

        A caller inside a call or an operator of its own is busy there instead.
        """
        if pair.lane not in self._waiting:
            runs = joined(pair.nodes, self._engine(pair))
            begun = self._begun(pair.caller, runs.start) == self._begun(pair.caller, runs.end)
            holder = _open(self.records.nesting, pair.caller, runs.start)
            free = (holder < 0) | ~self._busy()[np.maximum(holder, 0)]
            waiting = begun & free
            self._waiting[pair.lane] = Spans(runs.start[waiting], runs.end[waiting])
        return self._waiting[pair.lane]

    def _busy(self) -> NDArray[np.bool_]:
        """Per position: a call, or an operator that is no optimizer's closure."""
        events, nesting = self._trace.events, self.records.nesting
        optimizer = np.isin(
            events.name[nesting.row],
            causes.codes_matching(self._trace, causes.OPTIMIZER_PATTERN),
        )
        call = np.isin(events.kind[nesting.row], CALLS)
        return np.asarray(call | ((self.records.own == OPERATOR) & ~optimizer))

    def _begun(self, lane: int, at: Times) -> Times:
        """How many records of the thread began before each instant."""
        if lane not in self._starts:
            events = self._trace.events
            here = np.flatnonzero((events.lane == lane) & (events.dur > 0))
            self._starts[lane] = events.ts[here[np.isin(events.kind[here], STARTING)]]
        return np.asarray(np.searchsorted(self._starts[lane], at, "left"), np.int64)


def _plain_timeline(records: HostRecords, lane: int, span: Range) -> Timeline:
    """The thread cut at all its own records."""
    cuts = [np.array([span.start], np.int64)]
    for nesting in (records.nesting, records.ranges):
        cuts += _cuts(nesting, lane, span)
    start = _instants(*cuts)
    return Timeline(
        start=start,
        position=_open(records.nesting, lane, start),
        range=_open(records.ranges, lane, start),
    )


def _cuts(nesting: Nesting, lane: int, span: Range) -> list[Times]:
    """Where records of a lane begin and end inside a span.

    What is open at its start encloses the last record that began before it, or is that record.
    """
    here = on_lane(nesting, lane)
    starts = nesting.start[here]
    low, high = np.searchsorted(starts, np.array([span.start, span.end]), "right").tolist()
    around, at = [], here.start + low - 1 if low else -1
    while at >= 0:
        around.append(at)
        at = int(nesting.parent[at])
    ends = np.concatenate((nesting.end[around], nesting.end[here][low:high]))
    return [starts[low:high], ends[(ends > span.start) & (ends <= span.end)]]


def _open(nesting: Nesting, lane: int, at: Times) -> Rows:
    """What is open on a lane at each instant; nothing at all takes no memory."""
    here = on_lane(nesting, lane)
    if here.start == here.stop:
        return np.broadcast_to(np.int32(-1), len(at))
    return innermost(nesting, np.full(len(at), lane, np.int32), at)


def _instants(*cuts: Times) -> Times:
    """All cuts, sorted, each once; sorting is far faster here than the hashing of np.unique."""
    instants = np.sort(np.concatenate(cuts), kind="stable")
    first = np.append(np.array([True]), instants[1:] != instants[:-1])
    return np.asarray(instants[first], np.int64)


def _replaced(own: Timeline, other: Timeline, where: Spans, span: Range) -> Timeline:
    """The other timeline inside the spans, the own one elsewhere."""
    if not len(where.start):
        return own
    cuts = [each[(each > span.start) & (each <= span.end)] for each in where]
    start = _instants(own.start, other.start, *cuts)
    inside = contains(where, start)
    mine, its = own.at(start), other.at(start)
    return Timeline(
        start=start,
        position=np.where(inside, other.position[its], own.position[mine]),
        range=np.where(inside, other.range[its], own.range[mine]),
    ).merged()


def _launching_lane(trace: Trace, launches: Launches, backward: tuple[Backward, ...]) -> int | None:
    """The thread that launches most, beside those that run backward for another one."""
    calls = launches.launch[launches.launch >= 0]
    count = np.bincount(trace.events.lane[calls], minlength=len(trace.lanes))
    count[[pair.lane for pair in backward]] = 0
    return int(count.argmax()) if count.any() else None


def _backward_threads(
    trace: Trace, records: HostRecords, steps: Steps | None
) -> tuple[Backward, ...]:
    """Threads that run nodes for another one, each with its caller."""
    nesting = records.nesting
    node = _nodes(trace, records)
    found = []
    for lane in distinct(nesting.lane[node]).tolist():
        here = np.flatnonzero(node & (nesting.lane == lane))
        spans = union(nesting.start[here], nesting.end[here])
        caller = _caller(trace, records, node, here, steps)
        if caller is None or caller == lane:
            continue
        first = here[np.searchsorted(nesting.start[here], spans.start, "left")]
        found.append(Backward(lane=lane, caller=caller, nodes=spans, first=first))
    return tuple(found)


def _nodes(trace: Trace, records: HostRecords) -> NDArray[np.bool_]:
    """Per position: whether it is a node of the autograd engine."""
    events, nesting = trace.events, records.nesting
    codes = causes.codes_matching(trace, causes.NODE_PATTERN)
    if not len(codes):
        codes = causes.codes_matching(trace, causes.OLD_NODE_PATTERN)
    named = np.isin(events.name[nesting.row], codes)
    return np.asarray(named & np.isin(events.kind[nesting.row], (Kind.OPERATOR,)))


def _caller(
    trace: Trace,
    records: HostRecords,
    node: NDArray[np.bool_],
    here: NDArray[np.intp],
    steps: Steps | None,
) -> int | None:
    """The thread of the forward operators whose sequence numbers the nodes answer.

    Where no sequence numbers were recorded: the thread of the loop, or that with most operators
    outside of nodes in the same process.
    """
    events, nesting = trace.events, records.nesting
    outside = (records.own == OPERATOR) & ~node & ~_inside(nesting.parent, node)
    sequence = events.sequence[nesting.row]
    answered = sequence[here]
    answered = answered[answered >= 0]
    forward = outside & np.isin(sequence, answered)
    if len(answered) and forward.any():
        return int(np.bincount(nesting.lane[forward]).argmax())
    if steps is not None:
        return steps.lane
    pid = trace.lanes[int(nesting.lane[here[0]])].pid
    same = np.array([lane.pid == pid for lane in trace.lanes])
    outside &= same[nesting.lane]
    return int(np.bincount(nesting.lane[outside]).argmax()) if outside.any() else None


def _inside(parent: Rows, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether any enclosing record is marked, by doubling leaps."""
    found, above = marked.copy(), parent.copy()
    at = np.flatnonzero(above >= 0)
    while len(at):
        found[at] |= found[above[at]]
        above[at] = above[above[at]]
        at = at[above[at] >= 0]
    return found
