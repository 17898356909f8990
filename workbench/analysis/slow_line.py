"""The user's line that makes the slowest step slow, where Python stacks were recorded."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.steady import counted_ranges
from workbench.analysis.steps import Steps
from workbench.analysis.sync_calls import LIBRARY_FRAME
from workbench.trace.table import Kind, Trace

LEAST_STEPS = 3
"""Own choice: with fewer there is no usual step."""
MOSTLY = 0.5
"""Own choice: a line to blame takes so much of what the slowest step takes beyond the usual one."""


@dataclass(frozen=True, kw_only=True)
class SlowLine:
    """A function of the user's that takes much longer in one step than in the others."""

    line: str
    """As the trace names it: ``train.py(12): log``."""
    excess_ns: int
    """What it takes in the slowest step beyond the usual one."""


def slow_line(trace: Trace, steps: Steps | None) -> SlowLine | None:
    """The innermost such function; ``None`` without stacks, or where no step is slow by one.

    A step is profiled and so longer than it is, but a call that comes in one step alone shows.
    """
    counted = counted_ranges(steps)
    if steps is None or counted is None or len(counted[0]) < LEAST_STEPS:
        return None
    start, end = counted
    rows, step = _frames(trace, steps.lane, start, end)
    if not len(rows):
        return None
    slowest = int((end - start).argmax())
    beyond = float((end - start)[slowest] - np.median(end - start))
    names, code = np.unique(trace.events.name[rows], return_inverse=True)
    spent = np.zeros((len(names), len(start)), np.int64)
    np.add.at(spent, (code, step), trace.events.end[rows] - trace.events.ts[rows])
    excess = spent[:, slowest] - np.median(spent, axis=1)
    guilty = np.flatnonzero((excess >= MOSTLY * beyond) & (excess > 0))
    if beyond <= 0 or not len(guilty):
        return None
    inner = guilty[spent[guilty].sum(axis=1).argmin()]  # what calls it takes at least as long
    line = trace.names[int(names[inner])]
    return SlowLine(line=line, excess_ns=int(min(excess[inner], beyond)))


def _frames(
    trace: Trace, lane: int, start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of the user's Python functions that were called in a step, and its place."""
    events = trace.events
    own = trace.name_codes(lambda name: LIBRARY_FRAME.search(name) is None)
    rows = np.flatnonzero(
        (events.kind == Kind.PYTHON) & (events.lane == lane) & np.isin(events.name, own)
    )
    step = np.searchsorted(start, events.ts[rows], "right") - 1
    inside = (step >= 0) & (events.ts[rows] < end[np.maximum(step, 0)])
    return rows[inside], step[inside]
