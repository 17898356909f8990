"""How far the clock of a device is from the host's, by what cannot have happened.

No work begins before the call that launches it: a device whose work does is behind, by at least
``2 us - min(start - launch start)``. And no call that waits for work returns before that work has
ended: a device whose work ends later is ahead. What waits for all work of a device is its
synchronize, which the profiler itself issues when it stops, and a copy to pageable memory returns
when it is done.
"""

import re

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import work_rows
from workbench.trace.table import Kind, Trace

LEAST_DELAY_NS = 2_000
LEAST_AHEAD_NS = 25_000
"""In 60 real traces such calls return 5 to 10 us behind the work, and at most 23 us before it, in
traces whose clocks drift."""

CONTRADICTION_NS = 1_000_000
"""What is left of it by the largest shift that puts no work before its launch (own choice: as much
as a clock may be off at all)."""

Rows = NDArray[np.int32]

_WAITS_FOR_ALL = re.compile(r"(cuda|hip|musa)DeviceSynchronize(_v\d+)?")
_TO_PAGEABLE = re.compile(r"DtoH.*-> *Pageable", re.IGNORECASE)


def needed_offset(trace: Trace, launch: Rows, device: int, *, alone: bool) -> int:
    """Nanoseconds to add to a device's times; negative where its clock is ahead.

    Args:
        trace: The event table.
        launch: Per event row, the row of its launching call, or -1.
        device: The device.
        alone: Whether the trace has no other device, so that a synchronize waits for this one.
    """
    rows = work_rows(trace, device)
    rows = rows[launch[rows] >= 0]
    if not len(rows):
        return 0
    least = LEAST_DELAY_NS - int((trace.events.ts[rows] - trace.events.ts[launch[rows]]).min())
    if least > 0:
        return least
    late = max(
        _after_copies(trace, launch, rows), _after_waits(trace, launch, rows) if alone else 0
    )
    if late <= LEAST_AHEAD_NS or late + least > CONTRADICTION_NS:
        return 0  # no clock fits both: calls that returned early are no proof then
    return max(-late, least)


def _after_copies(trace: Trace, launch: Rows, rows: NDArray[np.intp]) -> int:
    """How long copies to pageable memory go on at most after their calls have returned."""
    codes = trace.name_codes(lambda name: _TO_PAGEABLE.search(name) is not None)
    copies = rows[np.isin(trace.events.name[rows], codes)]
    if not len(copies):
        return 0
    return int((trace.events.end[copies] - trace.events.end[launch[copies]]).max())


def _after_waits(trace: Trace, launch: Rows, rows: NDArray[np.intp]) -> int:
    """How long work goes on at most after a synchronize that began behind its launch call."""
    events = trace.events
    calls = events.rows(Kind.RUNTIME, Kind.DRIVER)
    codes = trace.name_codes(lambda name: _WAITS_FOR_ALL.fullmatch(name) is not None)
    calls = calls[np.isin(events.name[calls], codes)]
    worst = 0
    process = np.unique([lane.pid for lane in trace.lanes], return_inverse=True)[1]
    for pid in np.unique(process[events.lane[calls]]).tolist():
        waits = calls[process[events.lane[calls]] == pid]
        mine = rows[process[events.lane[launch[rows]]] == pid]
        if not len(mine):
            continue
        launched = events.end[launch[mine]]
        order = np.argsort(launched, kind="stable")
        done = np.maximum.accumulate(events.end[mine][order])
        last = np.searchsorted(launched[order], events.ts[waits], "right") - 1
        waits, last = waits[last >= 0], last[last >= 0]
        if len(waits):
            worst = max(worst, int((done[last] - events.end[waits]).max()))
    return worst
