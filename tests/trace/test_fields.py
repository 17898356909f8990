"""Every column against the arguments of real traces of each era, read by plain json.

The table says which argument fills a column; a file of every era and vendor must agree in all of
its records, and the example tells a value that stands in one of them.
"""

import gzip
import itertools
import json
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.trace.reference import exact_ns
from workbench import trace
from workbench.trace.table import Kind, Trace

pytestmark = [pytest.mark.traces, pytest.mark.slow]

HTA = "facebookresearch__HolisticTraceAnalysis/tests__data__"
KINETO = "pytorch__kineto/tb_plugin__"
LENS = "AMD-AGI__TraceLens/tests__traces__"
FILES = {
    "1.8": f"{KINETO}test__gpu_metrics_input.json.gz",
    "1.9": f"{KINETO}samples__resnet50_num_workers_4__worker0.1623212756351.pt.trace.json.gz",
    "2.0": f"{HTA}critical_path__cuda_event_sync__event_sync_trace.json.gz",
    "2.1": f"{HTA}critical_path__alexnet__benchmark_result_2869224_1695835535_trace.json.gz",
    "2.3": f"{HTA}ns_resolution_trace__rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "2.4": f"{HTA}nccl_parser_config__nccl_data.json.gz",
    "2.7": f"{LENS}h100__gaunernst_bert-small-uncased__1016001.json.gz",
    "stacks": "sidnb13__torch-profiling-tutorial/log__transformer__dc3b0e7228dd_851"
    ".1752215573993169006.pt.trace.json.gz",
    "amd": f"{LENS}mi300__resnet_act_checkpoint.json.gz",
    "mtia": f"{HTA}mtia_trace_single_rank__mtia_rank_0.json.gz",
    "mlu": "Cambricon__torch_mlu/third_party__kineto_mlu__tb_plugin__test"
    "__mlu_metrics_input.json.gz",
    "graph": "pytorch__kineto/docs__traces__after_fix_trace.json",
}


WHOLE = [file for file in FILES if file != "mtia"]
"""Compared in every record; MTIA's 440,000 events give only examples, to save a minute."""


class Field(NamedTuple):
    """A column, the arguments that fill it, and one value of it in one of the files."""

    column: str
    keys: tuple[str, ...]
    file: str
    example: Any


EVENTS = (
    Field("correlation", ("correlation",), "2.4", 60047),
    Field("external_id", ("External id", "external id"), "2.4", 12945),
    Field("device", ("device",), "amd", 2),
    Field("stream", ("stream",), "2.4", 40),
    Field("bytes", ("bytes", "size"), "mtia", 1852),
    Field("sequence", ("Sequence number",), "2.4", 1080),
    Field("forward_thread", ("Fwd thread id",), "2.4", 1),
    Field("python_id", ("Python id",), "stacks", 1),
    Field("python_parent", ("Python parent id",), "stacks", 1),
    Field("python_module", ("Python module id",), "stacks", 0),
)
LAUNCHES = (
    Field("grid", ("grid",), "2.4", [8, 1, 1]),
    Field("block", ("block",), "2.4", [544, 1, 1]),
    Field("registers", ("registers per thread",), "2.4", 96),
    Field("shared_memory", ("shared memory",), "2.4", 87568),
    Field("occupancy", ("est. achieved occupancy %",), "1.9", 100.0),
    Field("blocks_per_sm", ("blocks per SM",), "2.4", 0.074074),
    Field("warps_per_sm", ("warps per SM",), "2.4", 1.259259),
    Field("graph", ("graph id",), "graph", 0),
    Field("graph_node", ("graph node id",), "graph", 0),
)
TEXTS = (
    Field("shapes", ("Input Dims", "Input dims"), "amd", [[[2873320]], *[[]] * 9]),
    Field("types", ("Input type",), "2.7", ["long int", *["Scalar"] * 4]),
    Field("strides", ("Input Strides",), "amd", [[[1]], *[[]] * 9]),
    Field("values", ("Concrete Inputs",), "amd", ["", "", "", "1"]),
)
COLLECTIVES = (
    Field("name", ("Collective name",), "2.4", "allreduce"),
    Field("group", ("Process Group Name", "Process Group ID"), "2.3", "0"),
    Field("description", ("Process Group Description",), "2.4", "default_pg"),
    Field("group_size", ("Group size",), "amd", 8),
    Field("ranks", ("Process Group Ranks",), "2.3", "[0]"),
    Field("dtype", ("dtype",), "amd", "BFloat16"),
    Field("in_elements", ("In msg nelems",), "2.4", 6637568),
    Field("out_elements", ("Out msg nelems",), "amd", 2873320),
    Field("in_split", ("In split size",), "2.4", "[]"),
    Field("out_split", ("Out split size",), "2.4", "[]"),
    Field("rank", ("Rank",), "amd", 0),
    Field("rank_start", ("Global rank start",), "2.4", 0),
    Field("rank_stride", ("Global rank stride",), "2.4", 1),
)
WAITS = (
    Field("stream", ("wait_on_stream",), "2.0", 7),
    Field("event", ("wait_on_cuda_event_id",), "2.0", 8),
    Field("recorded_by", ("wait_on_cuda_event_record_corr_id",), "2.0", 1533),
)


@pytest.fixture
def opened(traces_root: Path) -> Callable[[str], tuple[Trace, list[dict[str, Any]]]]:
    """A file as we read it, and the arguments of its durations in the same order."""

    def open_(name: str) -> tuple[Trace, list[dict[str, Any]]]:
        found, expected = (
            trace.read(traces_root / FILES[name]),
            durations(traces_root / FILES[name]),
        )
        return found, [event.get("args") or {} for event in matched(found, expected)]

    return open_


@lru_cache(maxsize=2)
def durations(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    document = json.loads(text, strict=False, parse_float=Decimal)
    found = [event for event in document["traceEvents"] if event.get("ph") == "X"]
    return sorted(found, key=when)


def when(event: dict[str, Any]) -> tuple[int, int]:
    return exact_ns(event["ts"]), -exact_ns(event.get("dur", 0))


def matched(found: Trace, expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The file's durations, those of one time in the order of their names and threads in ``found``.

    Which of several records of one time stands first is the question of test_order.py.
    """
    assert len(found.events) == len(expected)
    lanes = [str(lane.tid) for lane in found.lanes]
    made: list[dict[str, Any]] = []
    for _, tied in itertools.groupby(expected, key=when):
        left = list(tied)
        while left:
            row = len(made)
            key = (found.names[found.events.name[row]], lanes[found.events.lane[row]])
            made.append(left.pop(next((at for at, e in enumerate(left) if place(e) == key), 0)))
    return made


def place(event: dict[str, Any]) -> tuple[str, str]:
    return str(event["name"]), str(event["tid"])


def told(args: dict[str, Any], keys: tuple[str, ...]) -> Any:
    """The argument under its first spelling that is there; a Decimal is a float again."""
    value = next((args[key] for key in keys if key in args), None)
    return float(value) if isinstance(value, Decimal) else value


def whole(value: Any) -> int:
    """A number that may be text or missing; one that no int32 holds stands for no stream."""
    number = -1 if value is None else int(value)
    return -1 if number == 2**32 - 1 else number


@pytest.mark.parametrize("file", WHOLE)
def test_numbers_of_every_record(file: str, opened: Any) -> None:
    found, expected = opened(file)
    assert len(found.events) == len(expected)
    host = np.isin(found.events.kind, (Kind.RUNTIME, Kind.DRIVER, Kind.OPERATOR, Kind.PYTHON))
    for field in EVENTS:
        values = [whole(told(args, field.keys)) for args in expected]
        column = getattr(found.events, field.column)
        if field.column in ("stream", "device", "bytes", "correlation"):
            # Of an operator these would be something else; a host call's bytes are its own.
            rows = np.flatnonzero(~host | (field.column == "correlation"))
            rows = rows[found.events.kind[rows] != Kind.OPERATOR]
        else:
            rows = np.arange(len(column))
        assert column[rows].tolist() == [values[row] for row in rows.tolist()], field.column


@pytest.mark.parametrize("file", WHOLE)
def test_launch_configurations_of_every_kernel(file: str, opened: Any) -> None:
    found, expected = opened(file)
    kinds = (Kind.RUNTIME, Kind.OPERATOR, Kind.ANNOTATION)
    device = ~np.isin(found.events.kind, kinds)
    rows = [row for row, args in enumerate(expected) if "grid" in args and device[row]]
    table = found.launch_configurations
    assert table.row.tolist() == rows
    for field in LAUNCHES:
        values = [told(expected[row], field.keys) for row in rows]
        column = getattr(table, field.column)
        if column.dtype.kind == "f":
            wanted = np.array([np.nan if v is None else v for v in values], column.dtype)
            assert np.array_equal(column, wanted, equal_nan=True), field.column
        else:
            wanted = [-1 if v is None else v for v in values]
            wanted = [json.loads(v) if isinstance(v, str) else v for v in wanted]
            assert column.tolist() == wanted, field.column


@pytest.mark.parametrize("file", WHOLE)
def test_shapes_types_strides_and_values_of_every_operator(file: str, opened: Any) -> None:
    found, expected = opened(file)
    for field in TEXTS:
        texts = getattr(found, field.column)
        codes = getattr(found.events, field.column).tolist()
        values = [json.loads(texts[code]) if code >= 0 else None for code in codes]
        assert values == [told(args, field.keys) for args in expected], field.column


@pytest.mark.parametrize("file", WHOLE)
def test_what_every_collective_tells(file: str, opened: Any) -> None:
    found, expected = opened(file)
    rows = [row for row, args in enumerate(expected) if "Collective name" in args]
    assert [collective.row for collective in found.collectives] == rows
    for field in COLLECTIVES:
        for collective in found.collectives:
            value = told(expected[collective.row], field.keys)
            mine = getattr(collective, field.column)
            if isinstance(mine, str):
                assert mine == ("" if value is None else str(value)), field.column
            else:
                assert mine == (None if value == -1 else value), field.column


@pytest.mark.parametrize("file", WHOLE)
def test_bandwidth_of_every_copy_and_what_every_synchronization_waits_for(
    file: str, opened: Any
) -> None:
    found, expected = opened(file)
    key = "memory bandwidth (GB/s)"
    copied = [row for row, args in enumerate(expected) if key in args]
    assert found.copies.row.tolist() == copied
    assert found.copies.bandwidth.tolist() == [told(expected[row], (key,)) for row in copied]
    # The profiler divides before it rounds: with times in ns, bytes over time is the same.
    if file == "2.4":
        moved = found.events.bytes[copied] / found.events.dur[copied]
        assert np.allclose(found.copies.bandwidth, moved)
    waits = [row for row, args in enumerate(expected) if "wait_on_cuda_event_id" in args]
    assert found.waits.row.tolist() == waits
    for field in WAITS:
        values = [whole(told(expected[row], field.keys)) for row in waits]
        assert getattr(found.waits, field.column).tolist() == values


@pytest.mark.parametrize("file", FILES)
def test_the_examples_occur(file: str, traces_root: Path) -> None:
    """So that a column that is empty everywhere cannot pass."""
    found = trace.read(traces_root / FILES[file])
    collectives = found.collectives
    for field in (*EVENTS, *LAUNCHES, *WAITS, *TEXTS, *COLLECTIVES):
        if field.file != file:
            continue
        if field in TEXTS:
            values = [json.loads(text) for text in getattr(found, field.column)]
        elif field in COLLECTIVES:
            values = [getattr(collective, field.column) for collective in collectives]
        else:
            owner: Any = found.launch_configurations if field in LAUNCHES else found.events
            column = getattr(found.waits if field in WAITS else owner, field.column)
            values = column.round(6).astype(str).tolist() if column.dtype.kind == "f" else []
            values = [float(value) for value in values] or column.tolist()
        assert field.example in values, field.column


def test_stacks_of_torch_before_2_0(opened: Any) -> None:
    found, expected = opened("1.9")
    stacks = [args.get("Call stack") or "" for args in expected]
    assert [found.stacks[code] if code >= 0 else "" for code in found.events.stack] == stacks
    assert sum(map(bool, stacks)) > 1000


def test_when_a_kernel_was_queued_was_never_recorded(opened: Any) -> None:
    """All 115,524 kernels of these traces say 0: CUPTI's sign for a moment it was not asked for."""
    found, expected = opened("2.4")
    assert {args["queued"] for args in expected if "queued" in args} == {0}
    assert set(found.launch_configurations.queued.tolist()) == {-1}
