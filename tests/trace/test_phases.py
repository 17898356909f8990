"""Every phase of the format: what becomes of it."""

import json
from typing import Any

from tests.kineto import Kineto
from tests.trace.reference import codes, names
from workbench import trace
from workbench.trace.table import Kind, Trace


def read(*events: dict[str, Any], **header: Any) -> Trace:
    return trace.read(json.dumps({**header, "traceEvents": list(events)}).encode())


def mark(phase: str, ts: float, name: str = "", tid: int = 1) -> dict[str, Any]:
    return {"ph": phase, "ts": ts, "pid": 1, "tid": tid, "name": name, "cat": "c"}


def spans(found: Trace) -> list[tuple[str, int, int]]:
    starts = found.events.ts.tolist()
    return list(zip(names(found), starts, found.events.dur.tolist(), strict=True))


def test_begin_and_end_nest_like_brackets() -> None:
    found = read(mark("B", 0, "outer"), mark("B", 2, "inner"), mark("E", 5), mark("E", 9))
    assert spans(found) == [("outer", 0, 9000), ("inner", 2000, 3000)]


def test_begin_and_end_belong_to_their_thread() -> None:
    found = read(
        mark("B", 0, "a", 1), mark("B", 1, "b", 2), mark("E", 3, tid=1), mark("E", 7, tid=2)
    )
    assert spans(found) == [("a", 0, 3000), ("b", 1000, 6000)]


def test_begin_and_end_are_joined_in_the_order_of_time() -> None:
    found = read(mark("E", 9), mark("B", 2, "inner"), mark("E", 5), mark("B", 0, "outer"))
    assert spans(found) == [("outer", 0, 9000), ("inner", 2000, 3000)]


def test_a_begin_without_end_and_an_end_without_begin_are_counted() -> None:
    found = read(mark("E", 0), mark("B", 1, "a"), mark("E", 2), mark("B", 3, "never"))
    assert spans(found) == [("a", 0, 1000)]
    assert codes(found) == {"unmatched_begin_end": 2}


def test_flows_keep_id_phase_and_place() -> None:
    flow = {"pid": 0, "tid": 7, "cat": "ac2g", "name": "ac2g"}
    start = {"ph": "s", "id": 5, "ts": 2, **flow}
    found = read(mark("X", 1), {"ph": "f", "bp": "e", "id": "5", "ts": 4, **flow}, start)
    flows = found.flows
    assert (flows.ts.tolist(), flows.id.tolist()) == ([1000, 3000], [5, 5])
    assert bytes(flows.phase.tolist()) == b"sf"
    assert {found.categories[c] for c in flows.category} == {"ac2g"}
    assert {found.lanes[c].tid for c in flows.lane} == {"7"}


def test_flow_ids_that_are_names_stay_apart() -> None:
    found = read(*[{"ph": "s", "id": i, "ts": 1} for i in ("a", "b", "a", "0x10", 3)])
    a, b, again, hexadecimal, number = found.flows.id.tolist()
    assert a == again != b
    assert (hexadecimal, number) == (16, 3)


def test_memory_instants_become_a_table() -> None:
    args = {"Bytes": -512, "Total Allocated": 1024, "Addr": 140_000_000_000_000}
    args |= {"Device Type": 1, "Device Id": 0}
    memory = {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5, "args": args}
    found = read(mark("X", 3), memory, {"ph": "I", "name": "mark", "ts": 7})
    table = found.memory
    assert (table.ts.tolist(), table.bytes.tolist()) == ([2000], [-512])
    assert (table.total_allocated.tolist(), table.total_reserved.tolist()) == ([1024], [-1])
    assert (table.device_type.tolist(), table.device_index.tolist()) == ([1], [0])
    assert [found.names[c] for c in found.instants.name] == ["mark"]
    assert found.instants.ts.tolist() == [4000]


def test_counters_have_a_series_each() -> None:
    found = read(
        mark("X", 1),
        {"ph": "C", "name": "queue", "ts": 2, "pid": 1, "args": {"length": 3}},
        {"ph": "C", "name": "io", "ts": 3, "pid": 1, "args": {"in": 1.5, "out": "2"}},
    )
    counters = found.counters
    series = [counters.names[c] for c in counters.series]
    assert list(zip(series, counters.value.tolist(), strict=True)) == [
        ("queue", 3.0),
        ("io: in", 1.5),
        ("io: out", 2.0),
    ]


def test_metadata_names_the_lanes() -> None:
    found = read(
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "thread 1 (main)"}},
        mark("X", 1),
    )
    assert [(lane.process, lane.thread) for lane in found.lanes] == [("python", "thread 1 (main)")]


def test_a_number_and_its_text_are_one_lane() -> None:
    found = read(mark("X", 1) | {"pid": "1"}, mark("X", 2) | {"tid": "1"}, mark("X", 3))
    assert [(lane.pid, lane.tid) for lane in found.lanes] == [("1", "1")]


def test_phases_that_hold_no_time_are_passed_over() -> None:
    found = read(mark("X", 1), *[mark(phase, 2) for phase in "bnePNODVvc"], mark("?", 3), {})
    assert len(found.events) == 1
    assert found.violations == ()


def test_only_metadata_is_a_trace_that_says_it_is_empty() -> None:
    found = read({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}})
    assert codes(found) == {"no_events": 1}


def test_arguments_become_columns() -> None:
    made = Kineto(gpu=True)
    made.op(
        "aten::mm",
        0,
        10,
        **{"External id": 3, "Sequence number": 12, "Fwd thread id": 1},
        **{"Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"]},
        **{"Input Strides": [[3, 1], []], "Concrete Inputs": ["", "0.5"]},
    )
    made.python("nn.Module: Linear_0", 1, 5, ident=4, parent=None)
    made.launched("gemm", call=(2, 1), kernel=(20, 5), correlation=77)
    made.events[-1]["args"] |= {"grid": [8, 2, 1], "block": [128, 1, 1], "bytes": 64}
    made.events[-1]["args"] |= {"registers per thread": 32, "est. achieved occupancy %": 50}
    found = trace.read(json.dumps(made.document()).encode())
    events = found.events
    op, python, call, kernel = range(4)
    assert events.kind.tolist() == [Kind.OPERATOR, Kind.PYTHON, Kind.RUNTIME, Kind.KERNEL]
    assert (events.external_id[op], events.sequence[op], events.forward_thread[op]) == (3, 12, 1)
    assert found.shapes[events.shapes[op]] == "[[2,3],[]]"
    assert found.types[events.types[op]] == '["float","Scalar"]'
    assert found.strides[events.strides[op]] == "[[3,1],[]]"
    assert found.values[events.values[op]] == '["","0.5"]'
    assert (events.python_id[python], events.python_parent[python]) == (4, -1)
    assert events.correlation[call] == events.correlation[kernel] == 77
    assert (events.device[kernel], events.stream[kernel], events.bytes[kernel]) == (0, 7, 64)
    assert events.device[:kernel].tolist() == [-1, -1, -1]
    launch = found.launch_configurations
    assert (launch.row.tolist(), launch.grid.tolist()) == ([kernel], [[8, 2, 1]])
    assert (launch.block.tolist(), launch.registers.tolist()) == ([[128, 1, 1]], [32])
    assert (launch.occupancy.tolist(), launch.shared_memory.tolist()) == ([50.0], [-1])


def test_collectives_tell_group_and_size() -> None:
    made = Kineto(gpu=True)
    made.kernel(
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        5,
        5,
        **{"Collective name": "allreduce", "Process Group Name": "0", "Group size": 2},
        **{"In msg nelems": 10, "Out msg nelems": 10, "dtype": "Float"},
        **{"Process Group Ranks": "[0, 1]"},
    )
    made.kernel("gemm", 0, 1)
    found = trace.read(json.dumps(made.document()).encode())
    (collective,) = found.collectives
    assert names(found)[collective.row].startswith("nccl")
    assert (collective.name, collective.group, collective.group_size) == ("allreduce", "0", 2)
    assert (collective.in_elements, collective.dtype, collective.ranks) == (10, "Float", "[0, 1]")
    assert collective.sequence is None
