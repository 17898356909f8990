"""How the host hands work to a device: how many launches, and whether the device was waiting."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import work_rows
from workbench.analysis.launches import Launches
from workbench.analysis.steps import Steps
from workbench.analysis.window import before_capture
from workbench.trace.table import Kind, Trace

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class LaunchStatistics:
    """Launches of kernels on one device in the complete steps; without steps, in all the trace."""

    count: int
    """Launch calls: a graph launch is one, however many kernels it brings."""
    per_step: float | None
    into_empty_queue_share: float | None
    """Share of the calls at whose end nothing launched earlier was unfinished on the device.

    ``None`` when the clocks of host and device cannot be compared.
    """
    queue_median: float | None
    """Median over the calls of work launched on the same stream and not begun at the call's end."""


def launch_statistics(
    trace: Trace, steps: Steps | None, launches: Launches, device: int
) -> LaunchStatistics | None:
    """Count the launches of a device and measure its queue; ``None`` without launch records.

    Args:
        trace: The event table.
        steps: The steps of the loop, if the trace marks any.
        launches: The join of device work to its launching calls.
        device: Index of the device.
    """
    events = trace.events
    rows = work_rows(trace, device)
    kernels = rows[(events.kind[rows] == Kind.KERNEL) & (launches.launch[rows] >= 0)]
    if not len(kernels):
        return None
    calls, first = np.unique(launches.launch[kernels], return_index=True)
    kernels = kernels[first]
    count_steps = 0 if steps is None else len(steps)
    if steps is not None and count_steps:
        inside = steps.step_of(events.ts[calls]) >= 0
        calls, kernels = calls[inside], kernels[inside]
    comparable = launches.clock_ok.get(device, True) and len(calls) > 0
    return LaunchStatistics(
        count=len(calls),
        per_step=len(calls) / count_steps if count_steps else None,
        into_empty_queue_share=(
            float(_empty_queue(trace, launches, device, rows, calls).mean()) if comparable else None
        ),
        queue_median=(
            float(np.median(_queue(trace, launches, device, rows, kernels))) if comparable else None
        ),
    )


def _empty_queue(
    trace: Trace, launches: Launches, device: int, rows: NDArray[np.intp], calls: Rows
) -> NDArray[np.bool_]:
    """Per call: at its end everything launched on the device before it had finished.

    Work launched before the capture began counts as launched earlier.
    """
    events = trace.events
    launch = launches.launch[rows]
    early = before_capture(trace, launches)[rows]
    known = (launch >= 0) | early
    rows, launch, early = rows[known], launch[known], early[known]
    called = np.where(early, np.iinfo(np.int64).min, events.ts[np.maximum(launch, 0)])
    order = np.argsort(called, kind="stable")
    done = np.maximum.accumulate(
        (events.ts[rows] + events.dur[rows])[order] + launches.clock_offset.get(device, 0)
    )
    earlier = np.searchsorted(called[order], events.ts[calls], "left") - 1
    returned = events.ts[calls] + events.dur[calls]
    unfinished = (earlier >= 0) & (done[np.maximum(earlier, 0)] > returned)
    return np.asarray(~unfinished)


def _queue(
    trace: Trace, launches: Launches, device: int, rows: NDArray[np.intp], kernels: NDArray[np.intp]
) -> Rows:
    """Per kernel: launches minus starts on its stream at the end of its launching call."""
    events = trace.events
    rows = rows[launches.launch[rows] >= 0]
    offset = launches.clock_offset.get(device, 0)
    length = np.zeros(len(kernels), np.int64)
    for stream in np.unique(events.stream[kernels]):
        there = rows[events.stream[rows] == stream]
        called = np.sort(events.ts[launches.launch[there]])
        begun = np.sort(events.ts[there] + offset)
        asked = np.flatnonzero(events.stream[kernels] == stream)
        call = launches.launch[kernels[asked]]
        at = events.ts[call] + events.dur[call]
        length[asked] = np.searchsorted(called, at, "right") - np.searchsorted(begun, at, "right")
    return length
