"""TensorBoard's profiler plugin: the same kernels, operators, steps and device numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.analysis.other_tools.told import HOST, expected, named, spans
from workbench.analysis.device_time import device_time
from workbench.analysis.intervals import Spans, clip, gaps, intersect, subtract, total, union
from workbench.analysis.kernels import kernel_table
from workbench.analysis.launches import join_launches
from workbench.analysis.operators import operator_calls, operator_table
from workbench.analysis.ranges import Range
from workbench.analysis.steps import find_steps
from workbench.trace import read
from workbench.trace.table import DEVICE_WORK, Kind, Trace

pytestmark = [pytest.mark.slow, pytest.mark.traces]


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
