"""Kernels, copies and sets of one trace, by name and step."""

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import device_indices, work_rows
from workbench.analysis.difference.by_step import ByStep, counted_steps, tabulate, typical_step
from workbench.analysis.families import family
from workbench.analysis.launches import Launches
from workbench.analysis.step_breakdown import step_borders
from workbench.analysis.steps import Steps
from workbench.analysis.window import window
from workbench.trace.table import Trace


def device_work(trace: Trace, launches: Launches, steps: Steps | None) -> ByStep | None:
    """What ran on all devices of a trace; ``None`` when nothing was recorded on one.

    Work belongs to the step that launched it; work without a launch record to the one between
    whose completions it starts. Without steps the whole trace is one column.
    """
    rows = work_rows(trace, None)
    if not len(rows):
        return None
    counted = counted_steps(steps)
    if steps is None or not len(counted):
        step = np.zeros(len(rows), np.int64)
    else:
        step = _step_of(trace, launches, steps, rows) - counted[0]
        rows, step = rows[step >= 0], step[step >= 0]
    events = trace.events
    codes, row = np.unique(events.name[rows], return_inverse=True)
    names = [trace.names[code] for code in codes]
    columns = max(1, len(counted))
    row = row.astype(np.int64)
    return tabulate(
        names,
        [family(name) for name in names],
        row=row,
        step=step,
        ns=events.dur[rows],
        steps=columns,
        order=row[step == typical_step(step, columns)],
    )


def _step_of(
    trace: Trace, launches: Launches, steps: Steps, rows: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Place of the complete step of each piece of device work, or a negative number."""
    events = trace.events
    launch = launches.launch[rows]
    found = np.where(launch >= 0, steps.step_of(events.ts[np.maximum(launch, 0)]), -1)
    for device in device_indices(trace):
        lost = (launch < 0) & (events.device[rows] == device)
        span = window(trace, device, steps, launches) if lost.any() else None
        if span is None:
            continue
        borders = step_borders(trace, device, steps, launches, span)
        start = events.ts[rows[lost]]
        place = np.searchsorted(borders, start, "right") - 1
        found[lost] = np.where((start < span.start) | (start >= span.end), -len(steps) - 1, place)
    # Far enough below zero that leaving warm-up out cannot bring it back.
    return np.where(found < 0, -len(steps) - 1, found)
