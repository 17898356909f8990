"""The chain of waits that decides when the steps end, piece by piece without a gap."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import CAUSES
from workbench.analysis.nesting import Times
from workbench.analysis.replay.graph import UNKNOWN, EdgeKind, Graph
from workbench.analysis.replay.replay import Replay

PATH_KINDS: tuple[str, ...] = (
    *("compute", "communication", "memory"),
    *CAUSES,
    *("optimizer", "backward", "forward", "other_operators"),
)
"""What a piece of the path is: device work by class, the cause of time without it, or, where no
device was recorded, the part of a step."""
_FIRST_CAUSE = PATH_KINDS.index(CAUSES[0])
COMPUTE, COMMUNICATION, MEMORY = 0, 1, 2


@dataclass(frozen=True, kw_only=True, eq=False)
class CriticalPath:
    """Pieces of time on the host's clock, in order and without a gap; columns of equal length."""

    numbers: tuple[int, ...]
    """The steps."""
    start: Times
    end: Times
    kind: NDArray[np.uint8]
    """Place in ``PATH_KINDS``."""
    row: NDArray[np.int64]
    """Row of the event that the piece belongs to, or -1."""
    lane: NDArray[np.int64]
    """Lane of that event, or -1."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length(self) -> int:
        """Length of the path: the measured length of the steps, in ns."""
        return int((self.end - self.start).sum())

    @property
    def by_kind(self) -> dict[str, int]:
        """Nanoseconds of the path by kind, longest first; they sum to its length."""
        summed = np.bincount(
            self.kind, weights=(self.end - self.start).astype(float), minlength=len(PATH_KINDS)
        )
        found = {name: round(ns) for name, ns in zip(PATH_KINDS, summed, strict=True) if ns > 0}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @property
    def unexplained(self) -> int:
        """The part of which the trace does not tell what was waited for."""
        return self.by_kind.get("unknown", 0)


class _Piece(NamedTuple):
    """A piece of the path before host time is divided by cause."""

    start: int
    end: int
    kind: int
    row: int
    lane: int


_HOST = -1
"""Kind of a piece of host code, to be divided; its lane is the thread."""


def critical_path(replay: Replay) -> CriticalPath:
    """Walk back from the end of the steps along the decisive waits."""
    graph = replay.graph
    pieces = [each for each in _walk(replay) if each.end > each.start]
    columns = [np.array(column, np.int64) for column in zip(*pieces[::-1], strict=True)]
    start, end, kind, row, lane = _divided(graph, columns)
    begins = np.ones(len(start), bool)
    begins[1:] = (np.diff(kind) != 0) | (np.diff(row) != 0) | (np.diff(lane) != 0)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(start))[: len(first)] - 1
    return CriticalPath(
        numbers=graph.span.numbers,
        start=start[first],
        end=end[last],
        kind=kind[first].astype(np.uint8),
        row=row[first],
        lane=lane[first],
    )


def _walk(replay: Replay) -> list[_Piece]:
    """Pieces from the last to the first, clipped to the steps."""
    graph = replay.graph
    edges, work, span = graph.edges, graph.work, graph.span
    chosen_of = np.full(len(graph.time), -1, np.int64)
    decisive = np.flatnonzero(edges.decisive)
    chosen_of[edges.target[decisive]] = decisive
    kinds = np.where(replay.communication, COMMUNICATION, np.where(replay.memory, MEMORY, COMPUTE))
    # Plain lists: looking up one number at a time is ten times as fast in them.
    chosen, kind_of, start_of = chosen_of.tolist(), kinds.tolist(), work.start.tolist()
    row_of = work.row.tolist()
    call_of = [*work.call.tolist(), *graph.host.row.tolist()]
    columns = (edges.source, edges.lag, edges.cause, edges.kind, edges.since, edges.lane)
    sources, lags, causes, edge_kinds, sinces, lanes = (column.tolist() for column in columns)
    lane_of = graph.evidence.trace.events.lane
    at, join, found = int(work.end[graph.last]), graph.last, []

    def take(until: int, kind: int, row: int, lane: int) -> None:
        nonlocal at
        until = max(until, span.start)
        if until < at:
            found.append(_Piece(until, at, kind, row, lane))
            at = until

    def take_work(index: int, until: int) -> None:
        row = row_of[index]
        take(until, kind_of[index], row, int(lane_of[row]))

    take_work(join, start_of[join])
    while at > span.start:
        edge = chosen[join]
        if edge < 0:
            take(span.start, _FIRST_CAUSE + UNKNOWN, -1, -1)
            break
        source = sources[edge]
        # A lag belongs to the launch of what follows it, or to the call that blocked.
        row = call_of[join]
        lane = int(lane_of[row]) if row >= 0 else -1
        take(at - max(lags[edge], 0), _FIRST_CAUSE + causes[edge], row, lane)
        if edge_kinds[edge] == EdgeKind.HOST:
            take(sinces[edge], _HOST, -1, lanes[edge])
        else:
            take_work(source, start_of[source])
        join = source
    return found


def _divided(graph: Graph, columns: list[Times]) -> list[Times]:
    """Host code divided at the records of its thread, each part with its cause and its record."""
    start, end, kind, row, lane = columns
    parts = [[column[kind != _HOST] for column in (start, end, kind, row, lane)]]
    for number, thread in graph.threads.items():
        here = np.flatnonzero((kind == _HOST) & (lane == number))
        first = thread.at(start[here])
        count = np.maximum(np.searchsorted(thread.start, end[here], "left") - first, 1)
        of = np.repeat(here, count)
        piece = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
        piece += np.repeat(first, count)
        stop = np.append(thread.start[1:], np.iinfo(np.int64).max)
        named = thread.row[piece].astype(np.int64)
        events = graph.evidence.trace.events
        at = np.where(named >= 0, events.lane[np.maximum(named, 0)], number)
        parts.append(
            [
                np.maximum(thread.start[piece], start[of]),
                np.minimum(stop[piece], end[of]),
                _FIRST_CAUSE + thread.cause[piece].astype(np.int64),
                named,
                at.astype(np.int64),
            ]
        )
    joined = [np.concatenate(each) for each in zip(*parts, strict=True)]
    real = np.flatnonzero(joined[1] > joined[0])
    order = real[np.argsort(joined[0][real], kind="stable")]
    return [column[order] for column in joined]
