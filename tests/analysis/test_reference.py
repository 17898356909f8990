"""Real traces against numbers computed independently, exact to the nanosecond.

The reference takes all devices of a file as one, counts a gap however short it is, knows the names
of NCCL and RCCL only, and the categories of Kineto's own builds only.
"""

import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.analysis.communication_names import is_communication
from workbench.analysis.device_time import DeviceTime, device_time, work_classes
from workbench.analysis.devices import device_indices
from workbench.analysis.host import host_breakdown
from workbench.analysis.input_wait import input_wait
from workbench.analysis.intervals import Spans, gaps, total
from workbench.analysis.launches import join_launches
from workbench.analysis.ranges import Range
from workbench.analysis.steps import STEP_NAME, find_steps
from workbench.analysis.trust import check_trust
from workbench.analysis.window import foreign_share, recording, window
from workbench.trace import read
from workbench.trace.table import DEVICE_WORK, Kind, Trace

pytestmark = [pytest.mark.slow, pytest.mark.traces]


@dataclass(frozen=True)
class Case:
    """A trace and the independent numbers about it."""

    trace: Trace
    numbers: dict[str, Any]


def reference() -> dict[str, dict[str, Any]]:
    """Every file with independent numbers; nothing where the traces are not at hand."""
    root = os.environ.get("WORKBENCH_TRACES")
    if not root:
        return {}
    numbers = json.loads((Path(root) / "reference_metrics.json").read_text())
    return {name: found for name, found in numbers.items() if found}


REFERENCE = reference()


@pytest.fixture(scope="module", params=REFERENCE, ids=list(REFERENCE))
def case(request: pytest.FixtureRequest, traces_root: Path) -> Case:
    """Each file in turn, read once for all tests."""
    return Case(trace=read(traces_root / request.param), numbers=REFERENCE[request.param])


def ns(microseconds: float) -> int:
    return round(microseconds * 1000)


KNOWN = {"kernel", "concurrent_kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset"}


def recorded(trace: Trace) -> tuple[DeviceTime, Spans] | None:
    """The recording of all devices as one, of the work that the reference knows, and its gaps."""
    events = trace.events
    known = [code for code, name in enumerate(trace.categories) if name.lower() in KNOWN]
    strange = np.isin(events.kind, DEVICE_WORK) & ~np.isin(events.category, known)
    kind = np.where(strange, Kind.OTHER, events.kind).astype(np.uint8)
    trace = replace(trace, events=replace(events, kind=kind))
    kernels = np.unique(trace.events.name[trace.events.rows(Kind.KERNEL)])
    for name in (trace.names[code] for code in kernels):
        assert is_communication(name) == bool(re.search("nccl|rccl", name, re.IGNORECASE)), name
    held = recording(trace, None)
    if held is None:
        return None
    return device_time(trace, None, held), quiet(trace, None, held)


def quiet(trace: Trace, device: int | None, span: Range) -> Spans:
    """The stretches in which no stream works."""
    return gaps(work_classes(trace, device).all, span.start, span.end)


def test_the_recording_agrees_with_the_reference(case: Case) -> None:
    found = recorded(case.trace)
    expected = case.numbers.get("gpu")
    if expected is None:
        assert found is None
        return
    assert found is not None
    time, idle = found
    assert {
        "window_us": time.range.length,
        "busy_us": time.busy,
        "idle_us": time.idle,
        "compute_us": time.compute,
        "comm_us": time.communication,
        "mem_us": time.memory,
        "exposed_comm_us": time.exposed_communication,
        "exposed_mem_us": time.exposed_memory,
    } == {key: ns(expected[key]) for key in expected if key in _COMPARED}
    lengths = idle.end - idle.start
    assert len(lengths) == expected["gaps_total"]
    assert (lengths > 10_000).sum() == expected["gaps_gt_10us"]
    assert sorted(lengths.tolist(), reverse=True)[:10] == [
        ns(us) for us in expected["ten_largest_gaps_us"]
    ]


_COMPARED = (
    "window_us",
    "busy_us",
    "idle_us",
    "compute_us",
    "comm_us",
    "mem_us",
    "exposed_comm_us",
    "exposed_mem_us",
)


def test_steps_are_counted_as_by_the_reference(case: Case) -> None:
    """It knows no torsos: its count is that of whole and dropped steps together."""
    trace = case.trace
    steps = find_steps(trace, join_launches(trace))
    expected = case.numbers.get("steps")
    if expected is None:
        assert steps is None
        return
    assert steps is not None
    assert len(steps) + steps.dropped == expected["count"]
    spans = {
        f"ProfilerStep#{number}": int(length)
        for number, length in zip(steps.numbers, steps.host_ns, strict=True)
    }
    given = {label: ns(us) for label, us in expected["durations_us"].items()}
    assert spans.items() <= given.items()


def test_waiting_in_the_loader_agrees_with_the_reference(case: Case) -> None:
    expected = case.numbers.get("dataloader")
    if expected is None:
        return
    trace = case.trace
    everything = Range(start=0, end=int(trace.events.end.max()))
    found = input_wait(trace, everything, find_steps(trace, join_launches(trace)))
    assert found is not None
    assert found.wait_ns == ns(expected["union_us"])
    assert len(found.waits.start) == expected["calls"]
    assert int((found.waits.end - found.waits.start).sum()) == ns(expected["total_us"])


def test_nothing_is_negative_and_everything_sums(case: Case) -> None:
    trace = case.trace
    launches = join_launches(trace)
    steps = find_steps(trace, launches)
    assert steps is None or (steps.time_ns >= 0).all()
    for device in device_indices(trace):
        held = window(trace, device, steps, launches)
        for span in (held, recording(trace, device)):
            if span is not None:
                _check_sums(device_time(trace, device, span), quiet(trace, device, span))
        share = foreign_share(trace, device, held, steps, launches)
        assert share is None or 0 <= share <= 1
    host = window(trace, None, steps, launches)
    if host is not None:
        parts = [part or 0 for part in host_breakdown(trace, host, steps).values()]
        assert min(parts) >= 0
        assert sum(parts) == host.length
    for violation in check_trust(trace, launches, steps).violations:
        assert violation.count > 0
        assert violation.share is None or 0 <= violation.share <= 1


def _check_sums(time: DeviceTime, idle: Spans) -> None:
    parts = (time.compute, time.exposed_communication, time.exposed_memory, time.idle)
    assert min(parts) >= 0
    assert sum(parts) == time.range.length
    assert total(idle) == time.idle
    assert time.busy <= time.range.length


def test_steps_have_a_name_of_their_own() -> None:
    assert STEP_NAME.match("ProfilerStep#12")
    assert not STEP_NAME.match("ProfilerStep#12 of a user")
