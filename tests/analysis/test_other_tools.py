"""Real traces against what other tools' own tests expect of them.

Where a definition is the same, the numbers are. Where it differs, the test changes our events as
the other definition has it, says which, and then finds the other tool's number.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.analysis.communication_names import is_communication
from workbench.analysis.device_time import DeviceTime, device_time
from workbench.analysis.kernels import kernel_table
from workbench.analysis.launches import join_launches
from workbench.analysis.operators import operator_table
from workbench.analysis.window import recording
from workbench.trace import read
from workbench.trace.table import DEVICE_WORK, Kind, Trace

pytestmark = pytest.mark.traces

ROUNDING_US = 1.5
"""TraceLens keeps microseconds since the machine's start as floats, good to half a microsecond."""


def expected(tool: str) -> list[dict[str, Any]]:
    root = os.environ.get("WORKBENCH_TRACES")
    if not root:
        return []
    told: list[dict[str, Any]] = json.loads(
        (Path(root) / "expected_by_other_tools.json").read_text()
    )[tool]
    return told


def file_of(case: dict[str, Any]) -> str:
    return str(case["trace"]).rpartition("__")[2]


def same(trace: Trace) -> Trace:
    """Nothing differs."""
    return trace


def sets_compute(trace: Trace) -> Trace:
    """TraceLens: a memory set is computation. Ours: it moves data, as a copy does."""
    return with_kind(trace, trace.events.rows(Kind.MEMSET), Kind.KERNEL)


def without_sets(trace: Trace) -> Trace:
    """TraceLens left the sets of these traces out. Ours: while one runs, the device works."""
    return with_kind(trace, trace.events.rows(Kind.MEMSET), Kind.OTHER)


def launched_only(trace: Trace) -> Trace:
    """TraceLens: work without a launch record is left out. Ours: it ran, whoever launched it.

    What is left of memory sets is computation there, as in its other traces.
    """
    work = trace.events.rows(*DEVICE_WORK)
    lost = work[join_launches(trace).launch[work] < 0]
    return sets_compute(with_kind(trace, lost, Kind.OTHER))


def with_kind(trace: Trace, rows: Any, kind: Kind) -> Trace:
    kinds = trace.events.kind.copy()
    kinds[rows] = kind
    return replace(trace, events=replace(trace.events, kind=kinds))


REASONS = {
    "memset (4.384 us) counted as computation": sets_compute,
    "TraceLens leaves out GPU events whose launch is not in the trace": launched_only,
    "26.64 us of memset left out": without_sets,
    "1.88 us memory event left out": without_sets,
}


def whole(trace: Trace) -> DeviceTime:
    span = recording(trace, None)
    assert span is not None
    return device_time(trace, None, span)


@pytest.mark.parametrize("case", expected("TraceLens"), ids=file_of)
def test_tracelens_divides_device_time_alike(case: dict[str, Any], traces_root: Path) -> None:
    why = case.get("explanation", "")
    changes = [change for text, change in REASONS.items() if why.startswith(text)] or [same]
    assert changes != [same] or case["agrees_with_reference_metrics_within_1_5us"]
    trace = read(traces_root / case["trace"])
    time = whole(changes[0](trace))
    ours = {
        "total_time": time.range.length,
        "busy_time": time.busy,
        "idle_time": time.idle,
        "computation_time": time.compute,
        "exposed_comm_time": time.exposed_communication,
        "total_comm_time": time.communication,
        "exposed_memcpy_time": time.exposed_memory,
        "total_memcpy_time": time.memory,
    }
    theirs_us = {name: ms * 1e3 for name, ms in case["values_ms"].items()}
    assert {name: ours[name] / 1e3 for name in theirs_us} == pytest.approx(
        theirs_us, abs=ROUNDING_US
    )
    if changes != [same]:  # the difference is real: without the change the numbers are others
        assert abs(whole(trace).compute - time.compute) + abs(whole(trace).busy - time.busy) > 1_000


@pytest.mark.parametrize(
    "case", expected("torch_tb_profiler"), ids=lambda case: case["trace"][-60:]
)
def test_the_plugin_of_tensorboard_lists_the_same_kernels(
    case: dict[str, Any], traces_root: Path
) -> None:
    """Calls, time, tensor cores, and means weighted by time, all to its two decimals."""
    found = kernel_table(read(traces_root / case["trace"]), None).set_index("name")
    for theirs in case["kernels_top8"]:
        ours = found.loc[theirs["Name"]]
        assert ours.calls == theirs["Calls"]
        assert ours.total_ns == theirs["Total Duration (us)"] * 1_000
        assert ours.tensor_core is (theirs["Tensor Cores Used"] == "Yes")
        assert ours.blocks_per_sm == pytest.approx(theirs["Mean Blocks Per SM"], abs=0.0051)
        percent = theirs["Mean Est. Achieved Occupancy (%)"]
        assert 100 * ours.occupancy == pytest.approx(percent, abs=0.0051)


@pytest.mark.parametrize(
    "case", expected("torch_tb_profiler"), ids=lambda case: case["trace"][-60:]
)
def test_the_plugin_of_tensorboard_lists_the_same_operators(
    case: dict[str, Any], traces_root: Path
) -> None:
    """Host time of its own: the plugin takes the calls of the CUDA runtime off, ours keeps them.

    An operator that launches is busy doing so. Operators without nested ones show the difference:
    it is what the runtime's calls inside them take, to the nanosecond.
    """
    trace = read(traces_root / case["trace"])
    found = operator_table(trace, join_launches(trace), None).set_index("name")
    compared = 0
    for theirs in case["operators_top10"]:
        ours = found.loc[theirs["name"]]
        assert ours.calls == theirs["calls"]
        assert ours.device_ns == theirs["device_total_duration"] * 1_000
        assert ours.host_total_ns == theirs["host_total_duration"] * 1_000
        if ours.host_self_ns == ours.host_total_ns:
            inside = runtime_inside(trace, theirs["name"])
            assert ours.host_self_ns - inside == theirs["host_self_duration"] * 1_000
            compared += 1
    assert compared >= 4


def runtime_inside(trace: Trace, name: str) -> int:
    """Nanoseconds of runtime calls inside the operators of this name, thread by thread."""
    events = trace.events
    operators = events.rows(Kind.OPERATOR)
    operators = operators[np.isin(events.name[operators], trace.name_codes(name.__eq__))]
    calls = events.rows(Kind.RUNTIME)
    spent = 0
    for lane in np.unique(events.lane[operators]):
        own, called = (rows[events.lane[rows] == lane] for rows in (operators, calls))
        own = own[np.argsort(events.ts[own])]
        at = np.searchsorted(events.ts[own], events.ts[called], side="right") - 1
        inside = (at >= 0) & (events.end[called] <= events.end[own[at]])
        spent += int(events.dur[called[inside]].sum())
    return spent


def test_hta_counts_the_same_kernels_of_nccl(traces_root: Path) -> None:
    (case,) = (each for each in expected("HTA") if "nccl kernels" in each["values"])
    trace = read(traces_root / case["trace"])
    kernels = trace.events.rows(Kind.KERNEL)
    spoken = np.isin(trace.events.name[kernels], trace.name_codes(is_communication))
    assert spoken.sum() == case["values"]["nccl kernels"] == 21
