"""The two stretches of time that device numbers are given for.

The *recording* runs from the first to the last device event, as in other tools. The *window* holds
exactly the complete steps: on a device from the completion of what was launched before the first of
them to the completion of what was launched in the last; without a device the host's step ranges;
without steps everything from the first to the last event. A device's ranges are on its own clock.
"""

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import work_rows
from workbench.analysis.intervals import clip, total, union
from workbench.analysis.launches import Launches
from workbench.analysis.ranges import Range
from workbench.analysis.steps import Steps
from workbench.trace.table import Kind, Trace

HOST_KINDS = (Kind.OPERATOR, Kind.ANNOTATION, Kind.RUNTIME, Kind.DRIVER, Kind.PYTHON)


def recording(trace: Trace, device: int | None) -> Range | None:
    """From the first device event's start to the last one's end (``None``: of any device)."""
    rows = work_rows(trace, device)
    rows = rows[trace.events.dur[rows] > 0]
    if not len(rows):
        return None
    return Range(start=int(trace.events.ts[rows].min()), end=int(trace.events.end[rows].max()))


def window(
    trace: Trace, device: int | None, steps: Steps | None, launches: Launches
) -> Range | None:
    """The stretch that holds the complete steps; ``device=None`` asks for the host's."""
    if steps is None or not len(steps):
        return _everything(trace, device, launches)
    if device is None:
        return _range(int(steps.start[0]), int(steps.end[-1]))
    return _device_window(trace, device, steps, launches)


def foreign_share(
    trace: Trace, device: int, window: Range | None, steps: Steps | None, launches: Launches
) -> float | None:
    """Share of the window's busy time whose work was launched outside its steps.

    Work without a launch record is left out: nobody knows where it was launched.
    """
    if window is None:
        return None
    events = trace.events
    rows = work_rows(trace, device)
    busy = total(clip(union(events.ts[rows], events.end[rows]), window.start, window.end))
    if busy == 0:
        return None
    if steps is None or not len(steps):
        return 0.0
    rows = rows[launches.launch[rows] >= 0]
    called = events.ts[launches.launch[rows]]
    rows = rows[(called < steps.start[0]) | (called >= steps.end[-1])]
    foreign = total(clip(union(events.ts[rows], events.end[rows]), window.start, window.end))
    return foreign / busy


def before_capture(trace: Trace, launches: Launches) -> NDArray[np.bool_]:
    """Per event row: device work launched before the capture began (pre-roll).

    It has no launch record and starts before every launched event of its stream; a stream without
    any launched event is held against its device.
    """
    events = trace.events
    early = np.zeros(len(events), bool)
    rows = work_rows(trace, None)
    known = launches.launch[rows] >= 0
    if not known.any() or known.all():
        return early
    never = np.iinfo(np.int64).max
    start = events.ts[rows]
    device = events.device[rows].astype(np.int64) + 1
    first_on_device = np.full(int(device.max()) + 1, never)
    np.minimum.at(first_on_device, device[known], start[known])
    stream_key = device << 32 | (events.stream[rows].astype(np.int64) + 1)
    of_stream, stream = np.unique(stream_key, return_inverse=True)
    first = np.full(len(of_stream), never)
    np.minimum.at(first, stream[known], start[known])
    limit = np.where(first[stream] < never, first[stream], first_on_device[device])
    early[rows] = ~known & (start < limit) & (limit < never)
    return early


def _device_window(trace: Trace, device: int, steps: Steps, launches: Launches) -> Range | None:
    events = trace.events
    rows = work_rows(trace, device)
    launch = launches.launch[rows]
    called = np.where(launch >= 0, events.ts[np.maximum(launch, 0)], np.iinfo(np.int64).max)
    before = (called < steps.start[0]) | before_capture(trace, launches)[rows]
    if steps.since is not None:
        before &= called >= steps.since
    inside = (called >= steps.start[0]) & (called < steps.end[-1])
    if not inside.any():
        return None
    last = (called >= steps.start[-1]) & (called < steps.end[-1])
    ends = events.end[rows]
    start = ends[before].max() if before.any() else events.ts[rows[inside]].min()
    return _range(int(start), int(ends[last if last.any() else inside].max()))


def _everything(trace: Trace, device: int | None, launches: Launches) -> Range | None:
    events = trace.events
    rows = events.rows(*HOST_KINDS)
    offset = 0 if device is None else launches.clock_offset.get(device, 0)
    start, end = events.ts[rows] - offset, events.end[rows] - offset
    if device is not None:
        work = work_rows(trace, device)
        if not len(work):
            return None
        start = np.concatenate((start, events.ts[work]))
        end = np.concatenate((end, events.end[work]))
    return _range(int(start.min()), int(end.max())) if len(start) else None


def _range(start: int, end: int) -> Range | None:
    return Range(start=start, end=end) if end > start else None
