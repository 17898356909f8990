"""Exact arithmetic on half-open intervals of int64 nanoseconds, vectorised.

``Spans`` are sorted, disjoint, non-empty intervals that do not touch; ``union`` makes them from
anything. Every other function takes ``Spans`` and gives ``Spans`` or a length.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


class Spans(NamedTuple):
    """Sorted, disjoint intervals ``[start, end)`` in nanoseconds."""

    start: Times
    end: Times


EMPTY = Spans(np.empty(0, np.int64), np.empty(0, np.int64))


def union(start: Times, end: Times) -> Spans:
    """The union of any intervals; empty and backward ones count as nothing, touching ones join."""
    start, end = np.asarray(start, np.int64), np.asarray(end, np.int64)
    real = end > start
    if not real.all():
        start, end = start[real], end[real]
    if not len(start):
        return EMPTY
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start)
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.empty(len(start), bool)
    first[0] = True
    np.greater(start[1:], reach[:-1], out=first[1:])
    begins = np.flatnonzero(first)
    return Spans(start[begins], reach[np.append(begins[1:], len(start)) - 1])


def joined(*parts: Spans) -> Spans:
    """All that any of the parts covers."""
    if not parts:
        return EMPTY
    return union(
        np.concatenate([part.start for part in parts]), np.concatenate([part.end for part in parts])
    )


def total(spans: Spans) -> int:
    """The summed length in nanoseconds."""
    return int((spans.end - spans.start).sum())


def clip(spans: Spans, lo: int, hi: int) -> Spans:
    """The part of the spans inside ``[lo, hi)``."""
    if hi <= lo:
        return EMPTY
    a = int(np.searchsorted(spans.end, lo, "right"))
    b = int(np.searchsorted(spans.start, hi, "left"))
    if b <= a:
        return EMPTY
    return Spans(np.maximum(spans.start[a:b], lo), np.minimum(spans.end[a:b], hi))


def gaps(spans: Spans, lo: int, hi: int) -> Spans:
    """What ``[lo, hi)`` has beside the spans, as maximal intervals."""
    if hi <= lo:
        return EMPTY
    inside = clip(spans, lo, hi)
    start = np.concatenate(([np.int64(lo)], inside.end))
    end = np.concatenate((inside.start, [np.int64(hi)]))
    real = end > start
    return Spans(start[real], end[real])


def intersect(a: Spans, b: Spans) -> Spans:
    """The time that lies in both."""
    if len(a.start) > len(b.start):
        a, b = b, a
    if not len(a.start):
        return EMPTY
    first = np.searchsorted(b.end, a.start, "right")
    count = np.searchsorted(b.start, a.end, "left") - first
    np.maximum(count, 0, out=count)
    of_a = np.repeat(np.arange(len(a.start)), count)
    within = np.arange(len(of_a)) - np.repeat(np.cumsum(count) - count, count)
    of_b = first[of_a] + within
    return Spans(np.maximum(a.start[of_a], b.start[of_b]), np.minimum(a.end[of_a], b.end[of_b]))


def subtract(a: Spans, b: Spans) -> Spans:
    """The time of ``a`` that is not in ``b``."""
    if not len(a.start) or not len(b.start):
        return a
    return intersect(a, gaps(b, int(a.start[0]), int(a.end[-1])))


def covered_until(spans: Spans, at: Times) -> Times:
    """For each instant, how much of the spans lies before it: differences give sums per range."""
    at = np.asarray(at, np.int64)
    if not len(spans.start):
        return np.zeros(len(at), np.int64)
    before = np.concatenate(([np.int64(0)], np.cumsum(spans.end - spans.start)))
    index = np.searchsorted(spans.start, at, "right")
    overshoot = np.where(index > 0, spans.end[np.maximum(index - 1, 0)] - at, 0)
    return np.asarray(before[index] - np.maximum(overshoot, 0), np.int64)


def contains(spans: Spans, at: Times) -> NDArray[np.bool_]:
    """For each instant, whether it lies inside ``[start, end)`` of one of the spans."""
    at = np.asarray(at, np.int64)
    if not len(spans.start):
        return np.zeros(len(at), bool)
    index = np.searchsorted(spans.start, at, "right") - 1
    return np.asarray((index >= 0) & (spans.end[np.maximum(index, 0)] > at))
