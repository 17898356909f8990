"""Idle time of a device that ends long after its next work had been launched.

The device was not idle then: it did something that the trace does not hold, such as a graph that
was launched before the recording began.
"""

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import work_rows
from workbench.analysis.intervals import gaps, union
from workbench.analysis.launches import Launches
from workbench.trace.table import Trace

UNRECORDED_NS = 1_000_000
"""A wait between launch and start that nothing recorded explains, when longer than this."""


def unexplained_waits(
    trace: Trace, launches: Launches, device: int
) -> tuple[NDArray[np.int64], int]:
    """Waits above the limit between a launch and its start, and the length of the recording."""
    events = trace.events
    rows = work_rows(trace, device)
    rows = rows[events.dur[rows] > 0]
    if not len(rows):
        return np.empty(0, np.int64), 0
    start, end = events.ts[rows], events.end[rows]
    busy = union(start, end)
    idle = gaps(busy, int(start[0]), int(end.max()))
    first = np.searchsorted(start, idle.end, "left")
    last = np.searchsorted(start, idle.end, "right")
    launch = launches.launch[rows]
    called = np.where(launch >= 0, events.ts[np.maximum(launch, 0)], np.iinfo(np.int64).max)
    next_work = first.copy()
    for tied in np.flatnonzero(last - first > 1):
        among = slice(int(first[tied]), int(last[tied]))
        next_work[tied] = first[tied] + int(np.argmin(called[among]))
    launch = launch[next_work]
    returned = events.end[np.maximum(launch, 0)] - launches.clock_offset[device]
    waits = np.where(launch >= 0, idle.end - np.maximum(idle.start, returned), 0)
    return waits[waits > UNRECORDED_NS], int(end.max() - start[0])
