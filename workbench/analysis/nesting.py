"""Which record lies inside which on one thread, for any number of records at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]
"""Row numbers and positions: half the memory of int64, and no trace has two thousand million."""
Times = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Nesting:
    """Records of host threads, thread by thread in time order, each with what encloses it.

    Positions count in this order; ``row`` leads back to the event table. A record that begins in
    another is its child, although rounding may let it end a little later (range crossings of
    0.4 us occur in real traces); its time beyond the parent's end is not counted inside it.
    """

    row: Rows
    lane: NDArray[np.int32]
    start: Times
    end: Times
    parent: Rows
    """Position of the enclosing record, or -1; always smaller than the child's own position."""


def nest(rows: NDArray[np.intp], lane: NDArray[np.int32], start: Times, end: Times) -> Nesting:
    """Nest records that are sorted by start, longer first on ties.

    Args:
        rows: Row numbers in the event table.
        lane: Thread of each record.
        start: Start of each record in ns.
        end: End of each record in ns.
    """
    order = np.argsort(lane, kind="stable")
    return nest_lanes(rows.astype(np.int32)[order], lane[order], start[order], end[order])


def nest_lanes(row: Rows, lane: NDArray[np.int32], start: Times, end: Times) -> Nesting:
    """Nest records that are sorted by thread, then as for ``nest``; keeps the arrays."""
    return Nesting(row=row, lane=lane, start=start, end=end, parent=_parents(lane, start, end))


def _parents(lane: NDArray[np.int32], start: Times, end: Times) -> Rows:
    """The nearest earlier record of the lane that is still open, by leaping over closed ones.

    A closed candidate is replaced by its own candidate; everything between the two was closed
    before it began, so nothing is missed, and the leaps double: log2(n) rounds are enough.
    """
    parent = np.arange(-1, len(lane) - 1, dtype=np.int32)
    if not len(lane):
        return parent
    parent[np.flatnonzero(np.diff(lane, prepend=lane[0] - 1))] = -1
    closed = np.flatnonzero(parent >= 0)
    closed = closed[end[parent[closed]] <= start[closed]]
    while len(closed):
        parent[closed] = parent[parent[closed]]
        candidate = parent[closed]
        still = (candidate >= 0) & (end[np.maximum(candidate, 0)] <= start[closed])
        closed = closed[still]
    return parent


def depths(parent: Rows) -> Times:
    """How many records enclose each one."""
    depth = np.zeros(len(parent), np.int64)
    for at, _ in ancestors(parent):
        depth[at] += 1
    return depth


def ancestors(parent: Rows) -> Iterator[tuple[NDArray[np.intp], Rows]]:
    """Walk up from every record at once: (positions, their ancestors), one level a round."""
    at = np.flatnonzero(parent >= 0)
    above = parent[at]
    while len(at):
        yield at, above
        above = parent[above]
        more = above >= 0
        at, above = at[more], above[more]


def distinct(values: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """The values that occur, sorted, for small non-negative numbers such as lanes or rows.

    ``np.unique`` hashes, which takes ten times as long on millions of them.
    """
    if not len(values):
        return np.zeros(0, np.intp)
    occurs = np.zeros(int(values.max()) + 1, bool)
    occurs[values] = True
    return np.flatnonzero(occurs)


def on_lane(nesting: Nesting, lane: int) -> slice:
    """Where the records of a thread stand."""
    first, last = np.searchsorted(nesting.lane, np.array((lane, lane + 1), nesting.lane.dtype))
    return slice(int(first), int(last))


def innermost(nesting: Nesting, lane: NDArray[np.int32], at: Times) -> Rows:
    """For each instant on a thread, the position of the innermost record open there, or -1."""
    found = np.full(len(at), -1, np.int32)
    for number in distinct(lane).tolist():
        here = on_lane(nesting, number)
        asked = np.flatnonzero(lane == number)
        place = np.searchsorted(nesting.start[here], at[asked], "right") - 1
        found[asked] = np.where(place >= 0, place + here.start, -1)
    asked = np.flatnonzero(found >= 0)
    while len(asked):
        asked = asked[nesting.end[found[asked]] <= at[asked]]
        found[asked] = nesting.parent[found[asked]]
        asked = asked[found[asked] >= 0]
    return found
