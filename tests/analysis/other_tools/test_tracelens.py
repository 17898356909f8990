"""TraceLens: where a definition differs, our events are changed as it has it, and agree."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.other_tools.told import expected, file_of, whole
from workbench.analysis.launches import join_launches
from workbench.trace import read
from workbench.trace.table import DEVICE_WORK, Kind, Trace

pytestmark = [pytest.mark.slow, pytest.mark.traces]

ROUNDING_US = 1.5
"""TraceLens keeps microseconds since the machine's start as floats, good to half a microsecond."""


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
