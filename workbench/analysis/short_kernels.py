"""Launches that take the host longer than their work takes the device."""

import numpy as np

from workbench.analysis.devices import work_rows
from workbench.analysis.launches import Launches
from workbench.analysis.steady import counted_ranges, inside
from workbench.analysis.steps import Steps
from workbench.trace.table import Trace


def short_kernel_share(
    trace: Trace, launches: Launches, steps: Steps | None, device: int
) -> float | None:
    """Share of launch calls that last longer than the work they launched; ``None`` without any.

    Graph launches bring many kernels in one call and are judged by all of them together.
    """
    events = trace.events
    rows = work_rows(trace, device)
    rows = rows[launches.launch[rows] >= 0]
    rows = rows[inside(counted_ranges(steps), events.ts[launches.launch[rows]])]
    if not len(rows):
        return None
    calls, index = np.unique(launches.launch[rows], return_inverse=True)
    work = np.zeros(len(calls), np.int64)
    np.add.at(work, index, events.dur[rows])
    return float((events.dur[calls] > work).mean())
