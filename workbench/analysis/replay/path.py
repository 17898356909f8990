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
    chosen = np.full(len(graph.time), -1, np.int64)
    decisive = np.flatnonzero(edges.decisive)
    chosen[edges.target[decisive]] = decisive
    kind_of = np.where(replay.communication, COMMUNICATION, np.where(replay.memory, MEMORY, 0))
    lane_of = graph.evidence.trace.events.lane
    at, join, found = int(work.end[graph.last]), graph.last, []

    def take(until: int, kind: int, row: int, lane: int) -> None:
        nonlocal at
        until = max(until, span.start)
        if until < at:
            found.append(_Piece(until, at, kind, row, lane))
            at = until

    def take_work(index: int, until: int) -> None:
        row = int(work.row[index])
        take(until, int(kind_of[index]), row, int(lane_of[row]))

    take_work(join, int(work.start[join]))
    while at > span.start:
        edge = int(chosen[join])
        if edge < 0:
            take(span.start, _FIRST_CAUSE + UNKNOWN, -1, -1)
            break
        source = int(edges.source[edge])
        lag, cause = int(edges.lag[edge]), int(edges.cause[edge])
        row = _row_of(graph, join)
        take(at - max(lag, 0), _FIRST_CAUSE + cause, row, int(lane_of[row]) if row >= 0 else -1)
        if edges.kind[edge] == EdgeKind.HOST:
            take(int(edges.since[edge]), _HOST, -1, int(edges.lane[edge]))
        else:
            take_work(source, int(work.start[source]))
        join = source
    return found


def _row_of(graph: Graph, join: int) -> int:
    """The event that a lag before this join belongs to: its launch, or the blocking call."""
    count = len(graph.work)
    return int(graph.work.call[join] if join < count else graph.host.row[join - count])


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
