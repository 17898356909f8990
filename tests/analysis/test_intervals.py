"""Interval arithmetic against a brute force that counts single nanoseconds."""

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.analysis.intervals import (
    EMPTY,
    Spans,
    clip,
    contains,
    covered_until,
    gaps,
    intersect,
    subtract,
    total,
    union,
)

END = 40
instants = st.integers(0, END)
intervals = st.lists(st.tuples(instants, instants), max_size=12)


def spans(pairs: list[tuple[int, int]]) -> Spans:
    return union(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]))


def nanoseconds(pairs: list[tuple[int, int]]) -> set[int]:
    return {t for a, b in pairs for t in range(a, b)}


def held(made: Spans) -> set[int]:
    """The single nanoseconds of spans that must be sorted, disjoint, not empty, not touching."""
    assert (made.end > made.start).all()
    assert (made.start[1:] > made.end[:-1]).all()
    assert made.start.dtype == made.end.dtype == np.int64
    return nanoseconds(list(zip(made.start.tolist(), made.end.tolist(), strict=True)))


@given(intervals)
def test_union_holds_every_instant_once(pairs: list[tuple[int, int]]) -> None:
    made = spans(pairs)
    assert held(made) == nanoseconds(pairs)
    assert total(made) == len(nanoseconds(pairs))


@given(intervals, intervals)
def test_intersection_and_difference_are_those_of_sets(
    a: list[tuple[int, int]], b: list[tuple[int, int]]
) -> None:
    assert held(intersect(spans(a), spans(b))) == nanoseconds(a) & nanoseconds(b)
    assert held(subtract(spans(a), spans(b))) == nanoseconds(a) - nanoseconds(b)


@given(intervals, instants, instants)
def test_gaps_and_clip_share_a_range_between_them(
    pairs: list[tuple[int, int]], lo: int, hi: int
) -> None:
    within = set(range(lo, hi))
    assert held(clip(spans(pairs), lo, hi)) == nanoseconds(pairs) & within
    assert held(gaps(spans(pairs), lo, hi)) == within - nanoseconds(pairs)


@given(intervals, st.lists(instants, max_size=8))
def test_instants_know_what_lies_before_them_and_whether_they_are_inside(
    pairs: list[tuple[int, int]], at: list[int]
) -> None:
    points = np.array(at, np.int64)
    real = nanoseconds(pairs)
    assert covered_until(spans(pairs), points).tolist() == [
        sum(t < point for t in real) for point in at
    ]
    assert contains(spans(pairs), points).tolist() == [point in real for point in at]


def test_touching_intervals_are_one_busy_stretch() -> None:
    assert spans([(0, 5), (5, 9), (10, 10)]) == Spans(np.array([0]), np.array([9]))


def test_nothing_gives_nothing() -> None:
    assert total(intersect(EMPTY, EMPTY)) == total(subtract(EMPTY, EMPTY)) == 0
    assert gaps(EMPTY, 3, 7) == Spans(np.array([3]), np.array([7]))


def test_nanoseconds_since_1970_stay_exact() -> None:
    """A double holds 53 bits, of which 1.7e18 ns takes 61: only integers keep the last digits."""
    base = 1_700_000_000_000_000_000
    made = union(np.array([base, base + 3]), np.array([base + 1, base + 10]))
    assert total(made) == 8
    assert total(gaps(made, base, base + 10)) == 2


def test_five_million_intervals_take_less_than_two_seconds() -> None:
    """Processor time, so that a busy machine does not decide the answer."""
    draw = np.random.default_rng(0)
    start = draw.integers(0, 10**12, 5_000_000)
    end = start + draw.integers(1, 2 * 10**5, len(start))
    began = time.process_time()
    busy = union(start, end)
    idle = gaps(busy, 0, 10**12)
    assert total(busy) - total(clip(busy, 10**12, 2 * 10**12)) + total(idle) == 10**12
    assert time.process_time() - began < 2.0
