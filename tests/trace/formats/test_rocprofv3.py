"""Results of rocprofv3: work on agents, calls of HIP, ranges, and odd entries."""

import json
from typing import Any

import pytest

from tests.trace.formats.tables import column, rows
from workbench import trace
from workbench.analysis.launches import join_launches
from workbench.errors import TraceError
from workbench.trace.table import DEVICE_WORK, Kind

GPU, CPU = 4096, 12
OPERATIONS = [
    {"kind": "NONE", "operations": []},
    {"kind": "HIP_RUNTIME_API", "operations": ["hipMalloc", "hipLaunchKernel", "hipMemcpy"]},
    {"kind": "MEMORY_COPY", "operations": ["NONE", "MEMORY_COPY_HOST_TO_DEVICE"]},
    {"kind": "MARKER_CORE_API", "operations": ["roctxRangePushA"]},
]


def record(kind: int, operation: int, start: int, end: int, ident: int, **rest: Any) -> Any:
    made = {"kind": kind, "operation": operation, "thread_id": 7, "size": 64}
    made |= {"start_timestamp": start, "end_timestamp": end}
    return made | {"correlation_id": {"internal": ident, "external": 0}} | rest


def dispatch(start: int, end: int, ident: int, kernel: int = 3) -> Any:
    info = {
        "agent_id": {"handle": GPU},
        "queue_id": {"handle": 1},
        "kernel_id": kernel,
        "workgroup_size": {"x": 64, "y": 1, "z": 1},
        "grid_size": {"x": 640, "y": 2, "z": 1},
        "group_segment_size": 128,
    }
    return record(9, 2, start, end, ident, dispatch_info=info)


def result(**lists: list[Any]) -> dict[str, Any]:
    return {
        "metadata": {"pid": 100, "init_time": 1, "fini_time": 2},
        "agents": [
            {"id": {"handle": CPU}, "type": 1, "name": "AMD EPYC", "logical_node_type_id": 0},
            {
                "id": {"handle": GPU},
                "type": 2,
                "name": "gfx942",
                "product_name": "AMD Instinct MI300X",
                "logical_node_type_id": 0,
            },
        ],
        "strings": {
            "buffer_records": OPERATIONS,
            "marker_api": [{"key": 5, "value": "ProfilerStep#1"}],
        },
        "kernel_symbols": [
            {"kernel_id": 3, "formatted_kernel_name": "gemm(float*)", "kernel_name": "_Z4gemm"},
            {"kernel_id": 4, "formatted_kernel_name": "__amd_rocclr_copyBuffer"},
        ],
        "buffer_records": lists,
    }


def document(*processes: dict[str, Any]) -> bytes:
    return json.dumps({"rocprofiler-sdk-tool": processes}).encode()


WHOLE = result(
    hip_api=[record(1, 1, 1000, 1010, 1), record(1, 2, 1030, 1040, 2)],
    kernel_dispatch=[dispatch(1020, 1060, 1), dispatch(1070, 1075, 6, kernel=4)],
    memory_copy=[
        record(
            *(2, 1, 1080, 1090, 2),
            src_agent_id={"handle": CPU},
            dst_agent_id={"handle": GPU},
            bytes=256,
        )
    ],
    marker_api=[record(3, 0, 990, 1100, 5)],
)


def test_the_lists_of_a_result_become_one_table() -> None:
    found = trace.read(document(WHOLE))
    assert rows(found) == [
        ("ProfilerStep#1", "annotation", 0, 110),
        ("hipLaunchKernel", "runtime", 10, 10),
        ("gemm(float*)", "kernel", 30, 40),
        ("hipMemcpy", "runtime", 40, 10),
        ("__amd_rocclr_copyBuffer", "memcpy", 80, 5),
        ("Memcpy HtoD", "memcpy", 90, 10),
    ]
    assert column(found, "device", *DEVICE_WORK) == [0, 0, 0]
    assert column(found, "bytes", Kind.MEMCPY) == [-1, 256]
    device = found.devices[0]
    assert (device.type, device.name, device.arch) == ("hip", "AMD Instinct MI300X", "gfx942")


def test_work_is_joined_to_the_call_of_the_same_correlation() -> None:
    found = trace.read(document(WHOLE))
    launch = join_launches(found).launch
    assert [int(launch[row]) for row in found.events.rows(*DEVICE_WORK)] == [1, -1, 3]


def test_grids_count_workgroups() -> None:
    # 640 work items in groups of 64 are 10 groups.
    launched = trace.read(document(WHOLE)).launch_configurations
    assert launched.grid[0].tolist() == [10, 2, 1]
    assert launched.block[0].tolist() == [64, 1, 1]
    assert launched.shared_memory[0] == 128


def test_correlations_of_two_processes_do_not_mix() -> None:
    first = result(hip_api=[record(1, 1, 0, 5, 1)], kernel_dispatch=[dispatch(10, 20, 1)])
    second = result(hip_api=[record(1, 1, 6, 8, 1)], kernel_dispatch=[dispatch(30, 40, 1)])
    found = trace.read(document(first, second))
    launch = join_launches(found).launch
    assert [int(launch[row]) for row in found.events.rows(Kind.KERNEL)] == [0, 1]


def test_one_process_that_stands_alone() -> None:
    alone = json.dumps({"rocprofiler-sdk-tool": WHOLE}).encode()
    assert len(trace.read(alone).events) == 6


def test_odd_entries_are_left_out_and_counted() -> None:
    odd = result(
        kernel_dispatch=[dispatch(0, 10, 1), {"start_timestamp": "soon"}, 5, dispatch(20, 30, 2)]
    )
    found = trace.read(document(odd))
    assert len(found.events) == 2
    assert [(v.code, v.count) for v in found.violations] == [("unreadable_records", 2)]


def test_unknown_numbers_keep_their_records() -> None:
    odd = result(kernel_dispatch=[dispatch(0, 10, 1, kernel=99)], hip_api=[record(77, 1, 0, 5, 1)])
    assert {row[0] for row in rows(trace.read(document(odd)))} == {"kernel 99", "operation 1"}


def test_a_cut_result_says_so() -> None:
    with pytest.raises(TraceError, match=r"damaged or cut rocprofv3 result of 300 bytes"):
        trace.read(document(WHOLE)[:300])
