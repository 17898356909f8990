"""Chrome JSON without categories: device lanes of XLA and rocprof become work."""

import json
from typing import Any

from tests.trace.formats.tables import column, rows
from workbench import trace
from workbench.analysis.launches import join_launches
from workbench.trace.table import DEVICE_WORK, Kind, Trace

Event = dict[str, Any]


def lane(pid: int, tid: int, process: str, thread: str) -> list[Event]:
    return [
        {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}},
        {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": thread}},
    ]


def event(name: str, pid: int, tid: int, ts: float, dur: float) -> Event:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": {}}


def read(*events: Event) -> Trace:
    # XLA ends its list with an empty event.
    document = {"displayTimeUnit": "ns", "metadata": {}, "traceEvents": [*events, {}]}
    return trace.read(json.dumps(document).encode())


def test_operations_of_a_tpu() -> None:
    found = read(
        *lane(3, 1, "/device:TPU:0", "XLA Modules"),
        *lane(3, 2, "/device:TPU:0", "XLA Ops"),
        *lane(7, 1, "/host:CPU", "python"),
        event("jit_f", 3, 1, 0, 10),
        event("while.1", 3, 2, 0, 10),
        event("fusion.2", 3, 2, 1, 3),
        event("copy.3", 3, 2, 5, 2),
        event("$loop.py:1 f", 7, 1, 0, 1),
    )
    assert rows(found, *DEVICE_WORK) == [
        ("fusion.2", "kernel", 1000, 3000),
        ("copy.3", "memcpy", 5000, 2000),
    ]
    assert {row[0] for row in rows(found, Kind.DEVICE_ANNOTATION)} == {"jit_f", "while.1"}
    assert rows(found, Kind.PYTHON) == [("$loop.py:1 f", "python", 0, 1000)]
    assert [(device.index, device.type) for device in found.devices] == [(0, "tpu")]


def test_lines_that_a_viewer_derived_from_streams_are_no_work() -> None:
    found = read(
        *lane(1, 1, "/device:GPU:0", "Stream #16(Kernel)"),
        *lane(1, 2, "/device:GPU:0", "XLA Ops"),
        event("gemm.kd", 1, 1, 0, 4),
        event("dot.1", 1, 2, 0, 4),
    )
    assert rows(found, *DEVICE_WORK) == [("gemm.kd", "kernel", 0, 4000)]
    assert column(found, "stream", *DEVICE_WORK) == [16]


def test_calls_without_a_correlation_stay_records_of_no_kind() -> None:
    # As runtime calls they would be launches whose kernels were lost.
    found = read(*lane(7, 1, "/host:CPU", "main"), event("cuLaunchKernel", 7, 1, 0, 1))
    assert rows(found) == [("cuLaunchKernel", "other", 0, 1000)]


def test_processes_of_rocprof() -> None:
    found = read(
        *lane(6, 0, "3 GPU0", ""),
        *lane(1, 0, "2 COPY", ""),
        *lane(2, 0, "1 CPU HIP API", ""),
        *lane(0, 0, "0 Markers and Ranges", ""),
        event("gemm", 6, 0, 2, 4),
        event("CopyHostToDevice", 1, 0, 7, 1),
        event("forward", 0, 0, 0, 9),
    )
    assert rows(found) == [
        ("forward", "annotation", 0, 9000),
        ("gemm", "kernel", 2000, 4000),
        ("CopyHostToDevice", "memcpy", 7000, 1000),
    ]
    assert column(found, "device", *DEVICE_WORK) == [0, 0]
    assert found.devices[0].type == "hip"


def test_copies_of_rocprof_belong_to_no_gpu_where_there_are_two() -> None:
    found = read(
        *lane(6, 0, "GPU0", ""),
        *lane(7, 0, "GPU1", ""),
        *lane(1, 0, "COPY", ""),
        *lane(2, 0, "CPU HIP API", ""),
        event("gemm", 6, 0, 0, 4),
        event("gemm", 7, 0, 1, 4),
        event("hipMemcpy", 2, 0, 5, 3),
        event("CopyHostToDevice", 1, 0, 7, 1),
    )
    assert column(found, "device", *DEVICE_WORK) == [0, 1]
    assert [row[:2] for row in rows(found, Kind.OTHER)] == [
        ("hipMemcpy", "other"),
        ("CopyHostToDevice", "other"),
    ]


def test_a_process_that_is_only_called_gpu_is_left_alone() -> None:
    found = read(*lane(6, 0, "GPU0", "train"), event("gemm", 6, 0, 0, 4))
    assert rows(found) == [("gemm", "other", 0, 4000)]


def arrow(phase: str, ident: int, pid: int, tid: int, ts: float) -> Event:
    place = {"pid": pid, "tid": tid, "ts": ts}
    return {"ph": phase, "cat": "DataFlow", "name": "dep", "id": ident, **place}


def test_arrows_of_rocprof_join_calls_to_their_work() -> None:
    """Two kernels of one moment, the second's call later than it by rounding; one call of none."""
    found = read(
        *lane(6, 0, "GPU0", ""),
        *lane(2, 9, "CPU HIP API", ""),
        event("hipLaunchKernel", 2, 9, 10, 3),
        event("hipLaunchKernel", 2, 9, 20, 3),
        event("hipDeviceSynchronize", 2, 9, 40, 3),
        event("gemm", 6, 4, 20, 4),
        event("relu", 6, 5, 20, 4),
        arrow("s", 0, 2, 9, 10),
        arrow("t", 0, 6, 0, 20),
        arrow("s", 1, 2, 9, 20),
        arrow("t", 1, 6, 0, 20),
        arrow("s", 2, 2, 9, 40),  # ends nowhere
    )
    launch = join_launches(found).launch
    assert [int(found.events.ts[row]) for row in launch if row >= 0] == [0, 10_000]
    assert [row[0] for row in rows(found, Kind.OTHER)] == ["hipDeviceSynchronize"]


def test_correlations_of_xla_join_calls_to_kernels() -> None:
    made = [
        event("cuLaunchKernel", 7, 1, 0, 1),
        event("gemm_fusion", 1, 1, 5, 4),
        event("cudaMemcpy", 7, 1, 9, 1),
    ]
    made[0]["args"] = {"correlation_id": "2105"}
    made[1]["args"] = {"correlation_id": "2105", "hlo_op": "gemm_fusion"}
    process = [
        *lane(1, 1, "/device:GPU:0", "Stream #16(Kernel)"),
        *lane(7, 1, "/host:CPU", "main"),
    ]
    found = read(*process, *made)
    assert join_launches(found).launch.tolist() == [-1, 0, -1]
    assert [row[0] for row in rows(found, Kind.DRIVER)] == ["cuLaunchKernel"]
    assert [device.type for device in found.devices] == ["cuda"]


def test_a_gpu_of_xla_without_any_sign_of_its_vendor() -> None:
    found = read(*lane(1, 1, "/device:GPU:0", "Stream #1(Kernel)"), event("fusion_3", 1, 1, 0, 4))
    assert [device.type for device in found.devices] == ["other"]
