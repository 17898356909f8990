"""Real traces against what other tools' own tests expect of them.

Where a definition is the same, the numbers are. Where it differs, the test changes our events as
the other definition has it, says which, and then finds the other tool's number.
"""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from workbench.analysis.communication_names import is_communication
from workbench.analysis.device_time import DeviceTime, device_time
from workbench.analysis.intervals import Spans, clip, gaps, intersect, subtract, total, union
from workbench.analysis.kernels import kernel_table
from workbench.analysis.launches import join_launches
from workbench.analysis.nesting import innermost, nest
from workbench.analysis.operators import operator_calls, operator_table
from workbench.analysis.ranges import Range
from workbench.analysis.steps import find_steps
from workbench.analysis.window import recording
from workbench.errors import TraceError
from workbench.trace import read
from workbench.trace.table import DEVICE_WORK, Kind, Trace

pytestmark = [pytest.mark.slow, pytest.mark.traces]

Rows = NDArray[np.intp]
HOST = (Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON)

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


def told_tools() -> set[str]:
    root = Path(os.environ["WORKBENCH_TRACES"])
    return set(json.loads((root / "expected_by_other_tools.json").read_text())) - {"note"}


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
    """Calls, time, tensor cores, and means weighted by time, all to its two decimals.

    Our table tells the median of the calls where the plugin tells mean, longest and shortest.
    """
    trace = read(traces_root / case["trace"])
    found = kernel_table(trace, None).set_index("name")
    for theirs in case["kernels_top8"]:
        ours = found.loc[theirs["Name"]]
        assert ours.calls == theirs["Calls"]
        assert ours.total_ns == theirs["Total Duration (us)"] * 1_000
        assert ours.total_ns / ours.calls / 1e3 == pytest.approx(
            theirs["Mean Duration (us)"], abs=0.51
        )
        us = trace.events.dur[named(trace, theirs["Name"].__eq__, Kind.KERNEL)] / 1e3
        assert us.max() == theirs["Max Duration (us)"]
        assert us.min() == theirs["Min Duration (us)"]
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
    launches = join_launches(trace)
    found = operator_table(trace, launches, None).set_index("name")
    each = operator_calls(trace, launches)
    assert each.device_self is not None
    compared = 0
    for theirs in case["operators_top10"]:
        ours = found.loc[theirs["name"]]
        assert ours.calls == theirs["calls"]
        assert ours.device_ns == theirs["device_total_duration"] * 1_000
        own = each.device_self[each.name == trace.names.index(theirs["name"])].sum()
        assert own == theirs["device_self_duration"] * 1_000
        assert ours.host_total_ns == theirs["host_total_duration"] * 1_000
        if ours.host_self_ns == ours.host_total_ns:
            inside = runtime_inside(trace, theirs["name"])
            assert ours.host_self_ns - inside == theirs["host_self_duration"] * 1_000
            compared += 1
    assert compared >= 4


def named(trace: Trace, predicate: Callable[[str], bool], *kinds: Kind) -> Rows:
    rows: Rows = trace.events.rows(*kinds)
    return rows[np.isin(trace.events.name[rows], trace.name_codes(predicate))]


def spans(trace: Trace, rows: Rows) -> Spans:
    return union(trace.events.ts[rows], trace.events.end[rows])


def steps_of_the_plugin(trace: Trace) -> list[Range]:
    """A step from its host range's start to the end of all work launched in it, none overlapping.

    Ours runs from the completion of what earlier steps launched to that of its own work.
    """
    events = trace.events
    work = events.rows(*DEVICE_WORK)
    call = join_launches(trace).launch[work]
    steps: list[Range] = []
    for row in named(trace, lambda name: name.startswith("ProfilerStep#"), *HOST):
        inside = (events.ts[call] >= events.ts[row]) & (events.end[call] <= events.end[row])
        last = events.end[work[(call >= 0) & inside]].max()
        start = max(steps[-1].end if steps else 0, events.ts[row])
        steps.append(Range(start=int(start), end=int(max(last, events.end[row]))))
    return steps


def claims_of_the_plugin(trace: Trace) -> dict[str, Spans]:
    """Who may claim an instant, the first before the others."""
    loads = named(trace, lambda name: name.startswith("enumerate(DataLoader)#"), *HOST)
    steps = named(trace, lambda name: name.startswith("ProfilerStep#"), *HOST)
    rest = np.setdiff1d(trace.events.rows(*HOST), np.concatenate((loads, steps)))
    return {
        "Kernel": spans(trace, trace.events.rows(Kind.KERNEL)),
        "Memcpy": spans(trace, trace.events.rows(Kind.MEMCPY)),
        "Memset": spans(trace, trace.events.rows(Kind.MEMSET)),
        "Runtime": spans(trace, trace.events.rows(Kind.RUNTIME)),
        "DataLoader": spans(trace, loads),
        "CPU Exec": spans(trace, rest),
    }


def divided_by_the_plugin(trace: Trace, step: Range) -> dict[str, int]:
    """Nanoseconds of one step, each instant given to the first that claims it."""
    free = gaps(union(np.empty(0, np.int64), np.empty(0, np.int64)), step.start, step.end)
    parts = {"total_us": step.length}
    for name, claimed in claims_of_the_plugin(trace).items():
        parts[name] = total(intersect(free, claimed))
        free = subtract(free, claimed)
    return parts | {"Other": total(free)}


@pytest.mark.parametrize(
    "case", expected("torch_tb_profiler"), ids=lambda case: case["trace"][-60:]
)
def test_the_plugin_of_tensorboard_divides_the_steps_alike(
    case: dict[str, Any], traces_root: Path
) -> None:
    """To the microsecond, in the plugin's steps; device time in them as ours has it.

    The plugin divides the device's idle time by what any thread does meanwhile, the kind of record
    deciding; ours by why the device waits, for which it looks at the thread that should launch.
    """
    trace = read(traces_root / case["trace"])
    numbers = find_steps(trace, join_launches(trace))
    assert numbers is not None
    divided = []
    for number, step in zip(numbers.numbers, steps_of_the_plugin(trace), strict=True):
        parts = divided_by_the_plugin(trace, step)
        time = device_time(trace, None, step)
        assert time.compute == parts["Kernel"]
        assert time.exposed_memory == parts["Memcpy"] + parts["Memset"]
        assert time.idle == sum(
            parts[name] for name in ("Runtime", "DataLoader", "CPU Exec", "Other")
        )
        divided.append({"step": str(number)} | {name: ns / 1e3 for name, ns in parts.items()})
    assert divided == case["per_step"]


@pytest.mark.parametrize(
    "case", expected("torch_tb_profiler"), ids=lambda case: case["trace"][-60:]
)
def test_the_plugin_of_tensorboard_averages_the_steps_alike(
    case: dict[str, Any], traces_root: Path
) -> None:
    """Means over all its steps in microseconds, and their percent of the step, both rounded."""
    trace = read(traces_root / case["trace"])
    each = [divided_by_the_plugin(trace, step) for step in steps_of_the_plugin(trace)]
    ours = {name: sum(parts[name] for parts in each) / len(each) / 1e3 for name in each[0]}
    (top,) = case["performance"]
    theirs = {part["name"]: part for part in top["children"]} | {"total_us": top}
    assert {name: part["value"] for name, part in theirs.items()} == pytest.approx(ours, abs=0.51)
    percent = {name: 100 * us / ours["total_us"] for name, us in ours.items()}
    assert {name: part["extra"] for name, part in theirs.items()} == pytest.approx(
        percent, abs=0.0051
    )


@pytest.mark.parametrize(
    "case", expected("torch_tb_profiler"), ids=lambda case: case["trace"][-60:]
)
def test_the_plugin_of_tensorboard_summarizes_the_device_alike(
    case: dict[str, Any], traces_root: Path
) -> None:
    """From the first of the plugin's steps to the end of the last.

    Its utilization is kernels only; ours is busy with copies and sets too. We tell blocks and
    occupancy of each kernel: weighted by time in the steps they give both estimates. A kernel's
    blocks fill at most all multiprocessors, and the time without kernels counts as none filled.
    """
    trace = read(traces_root / case["trace"])
    steps = steps_of_the_plugin(trace)
    start, end = steps[0].start, steps[-1].end
    found, (device,) = trace.launch_configurations, trace.devices[:1]
    kernels = trace.events.rows(Kind.KERNEL)
    assert found.row.tolist() == kernels.tolist()
    spent = np.minimum(trace.events.end[kernels], end) - np.maximum(trace.events.ts[kernels], start)
    weight = np.maximum(spent, 0)
    busy = total(clip(spans(trace, kernels), start, end))
    table = kernel_table(trace, Range(start=start, end=end))
    assert busy < device_time(trace, None, Range(start=start, end=end)).busy
    assert device.memory_bytes is not None
    percents = {
        "GPU Utilization": busy / (end - start),
        "Est. SM Efficiency": (np.minimum(found.blocks_per_sm, 1) @ weight) / (end - start),
        "Est. Achieved Occupancy": (found.occupancy @ weight) / weight.sum() / 100,
        "Kernel Time using Tensor Cores": table.total_ns[table.tensor_core.eq(True)].sum() / busy,
    }
    theirs = {line["title"]: line["value"] for line in case["gpu_metrics"]["data"]}
    assert {name: float(theirs.pop(name).rstrip(" %")) for name in percents} == pytest.approx(
        {name: 100 * share for name, share in percents.items()}, abs=0.0051
    )
    assert theirs == {
        f"GPU {device.index}:": "",
        "Name": device.name,
        "Memory": f"{device.memory_bytes / 2**30:.2f} GB",
        "Compute Capability": device.arch,
    }


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


def hta(key: str, root: Path) -> tuple[Trace, dict[str, Any]]:
    """The trace and the numbers of the one entry that tells this."""
    (case,) = (each for each in expected("HTA") if key in each["values"])
    return read(root / case["trace"].partition(" + ")[0]), dict(case["values"])


def whole_us(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """HTA: start and end cut to whole microseconds of the trace's clock, inwards. Ours: exact."""
    first = trace.base_ns or 0
    start, end = trace.events.ts + first, trace.events.end + first
    return -(-start // 1_000) - first // 1_000, end // 1_000 - first // 1_000


def covered(start: NDArray[np.int64], end: NDArray[np.int64]) -> int:
    """Length of the union, where records that cutting left without a length count as nothing."""
    return total(union(start, np.maximum(start, end)))


def operators_around(trace: Trace, calls: NDArray[Any]) -> list[list[str]]:
    """Names of the operators around each of these rows of the host, the innermost first."""
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    nesting = nest(rows, events.lane[rows], events.ts[rows], events.end[rows])
    found = []
    for at in innermost(nesting, events.lane[calls], events.ts[calls]):
        names = []
        while at >= 0:
            names.append(trace.names[events.name[nesting.row[at]]])
            at = nesting.parent[at]  # noqa: PLW2901
        found.append(names)
    return found


def test_hta_counts_and_describes_the_same_kernels_of_nccl(traces_root: Path) -> None:
    """What is told of the first is told of the first all-reduce: two broadcasts come before it."""
    trace, theirs = hta("nccl kernels", traces_root)
    kernels = named(trace, is_communication, Kind.KERNEL)
    assert len(kernels) == theirs["nccl kernels"] == 21
    told = {record.row: record for record in trace.collectives}
    assert set(kernels.tolist()) <= set(told)
    first = next(told[row] for row in kernels.tolist() if told[row].name != "broadcast")
    assert theirs["first"] == {
        "collective": first.name,
        "in_msg_nelems": first.in_elements,
        "out_msg_nelems": first.out_elements,
        "process_group_name": first.group,
        "desc": first.description,
        "ranks": json.loads(first.ranks),
    }


def test_hta_divides_the_time_of_mtia_alike(traces_root: Path) -> None:
    """Percent to the 0.01 that HTA's own test allows.

    HTA cuts every record to whole microseconds inwards and calls the lost rims idle: 22 ms in all
    of 25 677 mostly short records. The window told is 276 us longer than from the first record to
    the last; other revisions of HTA's test have 13 328 071 us, and then all parts as found here.
    """
    trace, theirs = hta("window_us", traces_root)
    start, end = whole_us(trace)
    work, kernels = trace.events.rows(*DEVICE_WORK), trace.events.rows(Kind.KERNEL)
    window = int(end[work].max() - start[work].min())
    busy, compute = covered(start[work], end[work]), covered(start[kernels], end[kernels])
    ours = {"idle_us": window - busy, "compute_us": compute, "non_compute_us": busy - compute}
    assert {name: 100 * theirs.pop(name) / theirs["window_us"] for name in ours} == pytest.approx(
        {name: 100 * us / window for name, us in ours.items()}, abs=0.01
    )
    assert theirs.pop("window_us") - window == 276
    assert (window, *ours.values()) == (13_328_071, 5_649_476, 7_305_597, 372_998)
    assert not theirs
    exact = whole(trace)
    assert exact.range.length / 1e3 == pytest.approx(window, abs=2)
    assert ours["compute_us"] * 1_000 < exact.compute
    assert ours["idle_us"] * 1_000 > exact.idle


def test_hta_joins_the_launches_of_mtia_alike(traces_root: Path) -> None:
    """Lengths are exact. Sums are of records cut to whole microseconds, as above.

    HTA's host wait: gaps of a stream, each as long as what ended last before it, in which the call
    of the next record began. Ours tells why the whole device is idle, of all streams together.
    """
    trace, theirs = hta("stream1 host_wait_us", traces_root)
    events, (start, end) = trace.events, whole_us(trace)
    launch, work = join_launches(trace).launch, events.rows(*DEVICE_WORK)
    kernels = events.rows(Kind.KERNEL)
    (launched,) = kernels[events.correlation[kernels] == 423]
    call = launch[launched]
    delay = max(0, int(events.ts[launched] - events.end[call]))
    one = work[events.stream[work] == 1]
    one = one[np.argsort(start[one], kind="stable")]
    before, after = one[:-1], one[1:]
    waits = (launch[after] >= 0) & (start[launch[after]] > end[before])
    fba = named(trace, "customized_fba_mul_const-dtype_Float".__eq__, Kind.KERNEL)
    around = operators_around(trace, launch[fba])
    assert theirs == {
        "COMPUTATION_sum_us": covered(start[kernels], end[kernels]),
        "kernel launch corr 423": {
            "cpu_dur": events.dur[call] / 1e3,
            "gpu_dur": events.dur[launched] / 1e3,
            "launch_delay": delay,
        },
        "streams": np.unique(events.stream[work]).tolist(),
        "stream1 host_wait_us": (start[after] - end[before])[waits].sum(),
        "aten::mul/customized_fba_mul_const-dtype_Float occurrences": sum(
            names[0] == "aten::mul" for names in around
        ),
    }


def test_hta_finds_the_same_annotations(traces_root: Path) -> None:
    """HTA leaves the last step out, as perhaps cut: what began in it and what it launched.

    Ours keeps it here: all that it launched is recorded.
    """
    trace, theirs = hta("distinct gpu_user_annotation names", traces_root)
    events, launch = trace.events, join_launches(trace).launch
    steps, work = find_steps(trace, join_launches(trace)), events.rows(*DEVICE_WORK)
    assert steps is not None
    assert (len(steps), steps.dropped, len(work)) == (5, 0, 6095)
    last = steps.start[-1]
    ranges = events.rows(Kind.DEVICE_ANNOTATION)
    ranges = ranges[events.ts[ranges] < last]
    host = events.rows(Kind.ANNOTATION)
    host = host[events.ts[host] < last]
    kept = work[events.ts[launch[work]] < last]

    def around(row: int) -> str:
        holds = (events.ts[ranges] <= events.ts[row]) & (events.end[row] <= events.end[ranges])
        (code,) = set(events.name[ranges[holds]].tolist()) or {-1}
        return trace.names[code] if code >= 0 else ""

    def said(correlation: int) -> str:
        (row,) = work[events.correlation[work] == correlation]
        name = trace.names[events.name[row]]
        short = name.removeprefix("void ").replace("(anonymous namespace)::", "").partition("<")[0]
        return f"{name if name.startswith('Memcpy') else short} in {around(row)}"

    assert theirs == {
        "distinct gpu_user_annotation names": len(np.unique(events.name[ranges])),
        "distinct user_annotation names": len(np.unique(events.name[host])),
        "gpu kernels after HTA step filter": len(kept),
        "kernels in Optimizer.step#SGD.step": sum(
            around(row) == "Optimizer.step#SGD.step" for row in kept
        ),
        "corr 135139": said(135139),
        "corr 164926": said(164926),
    }


def test_hta_sees_the_same_ranges_of_kernel_counters(traces_root: Path) -> None:
    """The profiler replays each kernel to count, so its ranges are no device work with us.

    They name no launch. HTA joins the n-th with the n-th launch; the fifth is counted from 0.
    """
    trace, theirs = hta("cuda_profiler_range events", traces_root)
    events = trace.events
    ranges = np.flatnonzero(events.category == trace.categories.index("cuda_profiler_range"))
    launches = named(trace, "cudaLaunchKernel".__eq__, Kind.RUNTIME)
    assert theirs["cuda_profiler_range events"] == len(ranges) == len(launches)
    assert set(events.kind[ranges]) == {Kind.PROFILER}
    assert not len(events.rows(*DEVICE_WORK))
    fifth = theirs["5th by ts"]
    assert fifth["name contains"] in trace.names[events.name[ranges[5]]]
    (names,) = operators_around(trace, launches[5:6])
    assert (names[-1], names[0]) == (fifth["top_level_op"], fifth["bottom_level_op"])


def test_hta_finds_the_same_start_in_unix_time(traces_root: Path) -> None:
    """HTA's start is the first event other than the profiler's own record of itself, ours is any's.

    What was read is exact to the nanosecond though the file's numbers need 19 digits.
    """
    trace, theirs = hta("baseTimeNanoseconds", traces_root)
    events = trace.events
    assert trace.base_ns is not None
    first = trace.base_ns + int(events.ts[events.kind != Kind.PROFILER].min())
    base = trace.header["baseTimeNanoseconds"]
    assert isinstance(base, int)
    assert theirs == {
        "first_event_ts_ns": first - base,
        "baseTimeNanoseconds": base,
        "absolute start = sum": first,
    }
    assert events.kind[0] == Kind.PROFILER
    assert trace.base_ns < first


def host_of_step(trace: Trace, number: int) -> Rows:
    """What begins on any thread of the host in a step's range, the range itself included."""
    events = trace.events
    (step,) = named(trace, f"ProfilerStep#{number}".__eq__, Kind.ANNOTATION)
    rows: Rows = events.rows(*HOST, Kind.RUNTIME, Kind.DRIVER)
    at = events.ts[rows]
    begun: Rows = rows[(at >= events.ts[step]) & (at < events.end[step])]
    return begun


def test_hta_finds_the_same_difference_of_two_traces(traces_root: Path) -> None:
    """HTA's step: what begins on the host in its range, calls and ranges as well as operators.

    Of the second trace ours leaves the step out: its last launch has no kernel, so it was cut.
    """
    base, theirs = hta("base step 1010 cpu events", traces_root)
    other = read(
        next(traces_root.glob("*HolisticTraceAnalysis/*trace_compare__test__test.json.gz"))
    )
    steps, cut = (find_steps(trace, join_launches(trace)) for trace in (base, other))
    assert steps is not None
    assert cut is not None
    assert (cut.numbers, cut.dropped) == ((1009,), 1)
    rows, events = host_of_step(base, 1010), base.events
    work = events.rows(*DEVICE_WORK)
    names = {base.names[events.name[row]]: int(events.dur[row]) // 1_000 for row in rows}
    after = {other.names[code] for code in other.events.name[host_of_step(other, 1010)]}
    assert theirs == {
        "iterations": list(steps.numbers),
        "base step 1010 cpu events": len(rows),
        "gpu events": int(np.isin(join_launches(base).launch[work], rows).sum()),
        "durations": {name: us for name, us in names.items() if us},  # theirs are without zeros
        "added": sorted(after - set(names)),
        "deleted": sorted(set(names) - after),
    }


NO_SUCH_NUMBER = {
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": (
        "Instructions counted inside a kernel are not read: the kernels were replayed to count"
        " them, so that the trace has no time of any kernel to set them against."
    ),
    "sizes_per_time": "Not of a trace: a memory timeline, which the reader refuses by name.",
    "sizes[744]": "As sizes_per_time.",
}
"""What another tool tells and we do not, and why."""

COMPARED = {
    "HTA": {
        *("idle_us", "compute_us", "non_compute_us", "window_us"),
        *("COMPUTATION_sum_us", "kernel launch corr 423", "cpu_dur", "gpu_dur", "launch_delay"),
        *("streams", "stream1 host_wait_us"),
        "aten::mul/customized_fba_mul_const-dtype_Float occurrences",
        *("distinct gpu_user_annotation names", "distinct user_annotation names"),
        *("gpu kernels after HTA step filter", "kernels in Optimizer.step#SGD.step"),
        *("corr 135139", "corr 164926"),
        *("nccl kernels", "first", "collective", "in_msg_nelems", "out_msg_nelems"),
        *("process_group_name", "desc", "ranks"),
        *("cuda_profiler_range events", "5th by ts", "name contains"),
        *("top_level_op", "bottom_level_op"),
        *("first_event_ts_ns", "baseTimeNanoseconds", "absolute start = sum"),
        *("iterations", "base step 1010 cpu events", "gpu events", "added", "deleted"),
        *("durations", "ProfilerStep#1010", "cudaEventQuery"),
        *("cudaLaunchKernel", "nccl:all_reduce"),
    },
    "TraceLens": {
        *("values_ms", "total_time", "busy_time", "idle_time", "computation_time"),
        *("exposed_comm_time", "total_comm_time", "exposed_memcpy_time", "total_memcpy_time"),
    },
    "torch_tb_profiler": {
        *("per_step", "performance", "gpu_metrics", "operators_top10", "kernels_top8"),
        *("name", "calls", "device_self_duration", "device_total_duration"),
        *("host_self_duration", "host_total_duration"),
        *("Name", "Calls", "Tensor Cores Used", "Total Duration (us)", "Mean Duration (us)"),
        *("Max Duration (us)", "Min Duration (us)", "Mean Blocks Per SM"),
        "Mean Est. Achieved Occupancy (%)",
    },
}
"""The keys that the tests above compare; those in ``WHOLE`` with all that is in them."""

WHOLE = {"per_step", "performance", "gpu_metrics"}


def keys(told: Any) -> set[str]:
    """All keys of what is told, but not those inside the ones that are compared as a whole."""
    if isinstance(told, list):
        return {key for each in told for key in keys(each)}
    if not isinstance(told, dict):
        return set()
    inner = (keys(value) for key, value in told.items() if key not in WHOLE | {"differences_us"})
    return set(told).union(*inner)


def test_every_number_of_other_tools_is_compared_or_known_to_be_none_of_ours() -> None:
    """What is new in the file fails here until it has a test, or a reason for having none."""
    about = {"trace", "source", "tool", "note", "values", "explanation", "differences_us"}
    about |= {"agrees_with_reference_metrics_within_1_5us"}
    found = {tool: {key for case in expected(tool) for key in keys(case)} for tool in told_tools()}
    none = set(NO_SUCH_NUMBER)
    entries = [keys(case["values"]) for case in expected("HTA")]
    assert sum(map(len, entries)) == len(set().union(*entries))  # the tests find each by one key
    assert none <= found["HTA"]
    assert {tool: told - about - none for tool, told in found.items()} == COMPARED


def test_the_timeline_of_memory_that_hta_reads_is_refused_by_name(traces_root: Path) -> None:
    (case,) = (each for each in expected("HTA") if "sizes_per_time" in each["values"])
    with pytest.raises(TraceError, match="memory timeline"):
        read(traces_root / case["trace"])
