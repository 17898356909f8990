"""Nesting by leaps must find what a stack would find."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.traces import columns
from tests.kineto import Kineto
from workbench.analysis.nesting import Nesting, depths, distinct, innermost, nest
from workbench.trace.table import Kind

Interval = tuple[int, int, int]

intervals = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), max_size=40
)
"""Lane, start, duration: crossing, equal and empty ones included."""


def nested(records: list[Interval]) -> Nesting:
    records = sorted(records, key=lambda record: (record[1], -record[2]))
    lane = np.array([record[0] for record in records], np.int32)
    start = np.array([record[1] for record in records], np.int64)
    end = start + np.array([record[2] for record in records], np.int64)
    return nest(np.arange(len(records)), lane, start, end)


def by_stack(nesting: Nesting) -> list[int]:
    """The parent of each record: what is still open on its lane, the latest begun first."""
    parents = []
    stack: list[int] = []
    for i in range(len(nesting.row)):
        while stack and (
            nesting.lane[stack[-1]] != nesting.lane[i] or nesting.end[stack[-1]] <= nesting.start[i]
        ):
            stack.pop()
        parents.append(stack[-1] if stack else -1)
        stack.append(i)
    return parents


@given(intervals)
def test_the_parent_is_the_latest_record_that_is_still_open(records: list[Interval]) -> None:
    nesting = nested(records)
    assert nesting.parent.tolist() == by_stack(nesting)


@given(intervals)
def test_the_depth_counts_the_records_around(records: list[Interval]) -> None:
    nesting = nested(records)
    expected: list[int] = []
    for parent in nesting.parent.tolist():
        expected.append(0 if parent < 0 else expected[parent] + 1)
    assert depths(nesting.parent).tolist() == expected


@given(intervals, st.lists(st.integers(0, 45), min_size=1, max_size=20))
def test_the_innermost_record_is_the_latest_begun_that_is_open(
    records: list[Interval], asked: list[int]
) -> None:
    nesting = nested(records)
    for lane in range(3):
        found = innermost(nesting, np.full(len(asked), lane, np.int32), np.array(asked))
        for at, position in zip(asked, found.tolist(), strict=True):
            here = [
                i
                for i in range(len(nesting.row))
                if nesting.lane[i] == lane and nesting.start[i] <= at < nesting.end[i]
            ]
            assert position == (here[-1] if here else -1)


@given(st.lists(st.integers(0, 40)))
def test_distinct_values_are_those_of_a_set(values: list[int]) -> None:
    assert distinct(np.array(values, np.int32)).tolist() == sorted(set(values))


@given(st.sets(st.sampled_from(Kind)))
def test_events_of_some_kinds_are_those_and_no_others(kinds: set[Kind]) -> None:
    made = Kineto(gpu=True)
    made.step(1, 0, 100)
    made.op("aten::mm", 10, 50)
    made.launched("gemm", call=(20, 5), kernel=(30, 40), correlation=1)
    events = columns(made).events
    expected = [Kind(kind) in kinds for kind in events.kind.tolist()]
    assert events.of_kind(*kinds).tolist() == expected
    assert events.rows(*kinds).tolist() == [row for row, wanted in enumerate(expected) if wanted]
