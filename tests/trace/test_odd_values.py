"""Values of types that nobody promised: the event survives, the value is kept or not recorded."""

import json
from typing import Any

import pytest

from tests.trace.reference import names
from workbench import trace
from workbench.analysis.steps import step_codes
from workbench.errors import TraceError
from workbench.trace.split import split_ranks
from workbench.trace.table import Trace
from workbench.trace.writing import cut


def read(*events: dict[str, Any]) -> Trace:
    return trace.read(json.dumps({"traceEvents": list(events)}).encode())


def kernel(**changes: Any) -> dict[str, Any]:
    args = {"device": 0, "stream": 7, "correlation": 3, "grid": [1, 2, 3], "bytes": 9}
    made: dict[str, Any] = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7}
    made |= {"ts": 5, "dur": 1}
    made["args"] = args | changes.pop("args", {})
    return made | changes


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("bytes", "4096", 4096),
        ("bytes", 4096.0, 4096),
        ("bytes", "many", -1),
        ("bytes", None, -1),
        ("bytes", 2**64, -1),
        ("bytes", True, -1),
        ("bytes", {"a": 1}, -1),
        ("stream", "7", 7),
        ("stream", "stream 7", -1),
        ("stream", 18446744073709551615, -1),
        ("stream", 2**40, -1),
        ("device", "1", 1),
        ("correlation", "0x1f", 31),
        ("correlation", -(2**63), -(2**63)),
        ("correlation", 10**30, -1),
        ("correlation", [3], -1),
    ],
)
def test_numbers_of_odd_types(column: str, value: Any, expected: int) -> None:
    found = read(kernel(), kernel(args={column: value}, name="odd", ts=6))
    assert getattr(found.events, column)[1] == expected
    assert names(found) == ["k", "odd"]
    assert found.events.correlation[0] == 3


@pytest.mark.parametrize(
    ("grid", "expected"),
    [([8, 2, 1], [8, 2, 1]), ("[8, 2, 1]", [8, 2, 1]), ("8", [8, 1, 1]), ([], [-1, -1, -1])],
)
def test_a_grid_may_be_a_list_or_text(grid: Any, expected: list[int]) -> None:
    assert read(kernel(args={"grid": grid})).launch_configurations.grid.tolist() == [expected]


@pytest.mark.parametrize(
    ("name", "expected"),
    [(None, ""), (5, "5"), (["a", 1], '["a", 1]'), ({"b": None}, '{"b": null}'), (True, "true")],
)
def test_names_of_odd_types(name: Any, expected: str) -> None:
    assert names(read(kernel(name=name))) == [expected]


@pytest.mark.parametrize("args", [None, [], "text", 5, [1, 2], {}])
def test_args_of_odd_types(args: Any) -> None:
    event = kernel()
    event["args"] = args
    found = read(event, kernel(ts=9))
    assert found.events.correlation.tolist() == [-1, 3]


@pytest.mark.parametrize(
    ("pid", "shown"), [(1.0, "1"), ("1", "1"), (None, ""), (True, "true"), ([1], "[1]"), (-5, "-5")]
)
def test_processes_of_odd_types(pid: Any, shown: str) -> None:
    found = read(kernel(pid=pid))
    assert found.lanes[found.events.lane[0]].pid == shown


def test_elements_that_are_no_events_are_passed_over() -> None:
    text = b'[{"ph": "X", "name": "a", "ts": 1}, null, 5, "x", [], {}, {"ph": 3}, {"ph": null}]'
    read = trace.read(text)
    assert names(read) == ["a"]
    # null, 5, "x" and [] are no objects; {} and unknown phases are what the format allows.
    assert [(v.code, v.count) for v in read.violations] == [("unreadable_records", 4)]


def test_a_list_of_events_may_begin_with_nothing() -> None:
    text = b'{"traceEvents": [null, {"ph": "X", "name": "a", "ts": 1}]}'
    read = trace.read(text)
    assert names(read) == ["a"]
    assert [(v.code, v.count) for v in read.violations] == [("unreadable_records", 1)]


def test_of_a_key_that_stands_twice_the_last_counts() -> None:
    found = trace.read(b'[{"ph": "X", "name": "first", "name": "second", "ts": 1}]')
    assert names(found) == ["second"]


@pytest.mark.parametrize(
    "header",
    [
        {"deviceProperties": None},
        {"deviceProperties": {"id": 0}},
        {"deviceProperties": [None, 5, {"id": "x"}, {"name": None}]},
        {"distributedInfo": None},
        {"distributedInfo": {"rank": "first", "world_size": -1}},
        {"distributedInfo": {"rank": 2**70}},
        {"baseTimeNanoseconds": "soon"},
        {"baseTimeNanoseconds": 1.5},
        {"baseTimeNanoseconds": 2**80},
    ],
)
def test_headers_of_odd_types(header: dict[str, Any]) -> None:
    found = trace.read(json.dumps({**header, "traceEvents": [kernel()]}).encode())
    assert len(found.events) == 1
    assert found.rank is None
    assert found.base_ns is None


def test_more_categories_than_a_column_can_number() -> None:
    events = [kernel(cat=f"c{i}", args={}) for i in range(33_000)]
    assert len(read(*events).events) == 33_000


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000])
def test_steps_with_absurd_numbers_are_no_steps(number: str) -> None:
    mark = kernel(cat="user_annotation", name=f"ProfilerStep#{number}", args={})
    found = read(mark, kernel(ts=6))
    assert step_codes(found).tolist() == []
    with pytest.raises(TraceError, match="marks no steps"):
        cut(found, steps=(0, 1))


def test_ranks_with_absurd_numbers_are_told_apart() -> None:
    found = read(kernel(pid="[TP-" + "1" * 5000 + "] 1"), kernel(pid="[TP-2] 1"))
    assert len(split_ranks(found)) in (1, 2)


def test_the_largest_device_number_is_one_device() -> None:
    found = read(kernel(args={"device": 2**15 - 1}), kernel(ts=9))
    assert [device.index for device in found.devices] == [0, 2**15 - 1]


def test_sizes_of_messages_that_cannot_be_are_not_recorded() -> None:
    args = {"Collective name": "allreduce", "Group size": 0, "In msg nelems": 2**62, "Seq": -5}
    (told,) = read(kernel(args=args)).collectives
    assert (told.group_size, told.in_elements, told.sequence) == (None, None, None)


def test_an_occupancy_beyond_single_precision_is_not_recorded() -> None:
    args = {"blocks per SM": 1e300, "est. achieved occupancy %": 50}
    found = read(kernel(args=args)).launch_configurations
    assert (str(found.blocks_per_sm[0]), found.occupancy[0]) == ("nan", 50)


def test_a_long_name_is_one_name_beside_odd_and_usual_values() -> None:
    # The first is read as text of numbers and the second is not: both are kept whole.
    name = "n" * 10_000
    found = read(kernel(name=name, tid=None), kernel(ts=9), kernel(name=name, ts=12))
    assert names(found) == [name, "k", name]


@pytest.mark.parametrize("base", ["1.7e18", '"1700000000000000000"', "1700000000000000000.0"])
def test_a_time_base_may_be_written_as_text_or_with_an_exponent(base: str) -> None:
    text = b'{"baseTimeNanoseconds": %s, "traceEvents": [%s]}'
    found = trace.read(text % (base.encode(), json.dumps(kernel()).encode()))
    assert found.base_ns == 1_700_000_000_000_000_000 + 5_000  # the first event starts at 5 us
