"""Idle time of a device in which it must have worked, although the trace holds nothing of it.

Work that had been launched did not begin, or a blocking call did not return, although everything
recorded had ended: the device did something else, such as a graph launched before the recording.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.analysis import causes
from workbench.analysis.devices import device_indices, work_rows
from workbench.analysis.gaps import IdleGaps, idle_gaps
from workbench.analysis.intervals import contains, union
from workbench.analysis.launches import Launches
from workbench.analysis.ranges import Range
from workbench.analysis.window import recording
from workbench.trace.table import Kind, Trace

UNRECORDED_NS = 1_000_000
"""A wait that nothing recorded explains, when longer than this. In real traces the device takes
launched work within 0.1 ms, and a call that spins returns within 0.3 ms of the device's end."""

Times = NDArray[np.int64]


class Waits(NamedTuple):
    """Blocking calls that waited for work that the trace does not hold."""

    call: NDArray[np.intp]
    """Row of each call."""
    start: Times
    """From when on no recorded work was left, on the host's clock; until the end of the call."""


def unseen_from(gaps: IdleGaps) -> Times:
    """For each gap, from when on launched work was held back unseen; its end where it was not."""
    held = np.maximum(gaps.start, gaps.pending)
    return np.where(gaps.end - UNRECORDED_NS > held, held, gaps.end)


def waits_for_unseen(trace: Trace, launches: Launches) -> Waits:
    """Blocking calls that lasted on when all recorded work of every device had ended."""
    events = trace.events
    calls = events.rows(Kind.RUNTIME, Kind.DRIVER)
    calls = calls[np.isin(events.name[calls], trace.name_codes(_returns_at_once))]
    calls = calls[events.dur[calls] > UNRECORDED_NS]
    devices = [device for device in device_indices(trace) if launches.clock_ok[device]]
    if not len(calls) or not devices:
        return Waits(calls[:0], events.ts[calls[:0]])
    rows = np.concatenate([work_rows(trace, device) for device in devices])
    offset = np.array([launches.clock_offset[int(device)] for device in events.device[rows]])
    begun, done = events.ts[rows] + offset, events.ts[rows] + events.dur[rows] + offset
    busy = union(begun, done)
    start, end = events.ts[calls], events.ts[calls] + events.dur[calls]
    last = np.searchsorted(busy.end, end, "right") - 1
    known = np.maximum(start, np.where(last >= 0, busy.end[np.maximum(last, 0)], start))
    unseen = (end - known > UNRECORDED_NS) & ~contains(busy, end - 1)
    calls = calls[unseen]
    # What other threads launch meanwhile is nothing that the call waits for.
    called = np.where(launches.launch[rows] >= 0, events.ts[launches.launch[rows]], begun)
    left = [
        max(int(events.ts[call]), int(done[called < events.ts[call]].max(initial=0)))
        for call in calls
    ]
    return Waits(calls, np.array(left, np.int64))


def _returns_at_once(name: str) -> bool:
    """Whether a call of this name spins until the device is done.

    Waiting for an event may sleep, and a busy machine wakes it milliseconds late (in a real trace
    with loader workers up to 6.8 ms).
    """
    return causes.call_cause(name) == "synchronization" and "Event" not in name


def unexplained_waits(
    trace: Trace, launches: Launches, device: int, *, all_of_it: bool
) -> tuple[Times, int]:
    """Idle times of a device that hold unseen work, and the length of what was looked at.

    Args:
        trace: The event table.
        launches: The join of device work to its launching calls.
        device: Index of the device.
        all_of_it: Whether the time before the first recorded work counts, as it does in a window
            that no steps bound.
    """
    span = recording(trace, device)
    if span is None:
        return np.empty(0, np.int64), 0
    if all_of_it:
        span = Range(start=_first_asked(trace, launches, device, span.start), end=span.end)
    found = []
    for gaps in idle_gaps(trace, device, span, launches):
        waits = np.where(gaps.launch >= 0, gaps.end - unseen_from(gaps), 0)
        found.append(waits[waits > 0])
    return np.concatenate(found), span.length


def _first_asked(trace: Trace, launches: Launches, device: int, began: int) -> int:
    """When a device was first asked for work, on its clock: it may have been busy until it began.

    Args:
        trace: The event table.
        launches: The join of device work to its launching calls.
        device: Index of the device.
        began: When its first recorded work began.
    """
    calls = launches.launch[work_rows(trace, device)]
    calls = calls[calls >= 0]
    if not len(calls):
        return began
    asked = int(trace.events.end[calls].min()) - launches.clock_offset.get(device, 0)
    return min(began, asked)
