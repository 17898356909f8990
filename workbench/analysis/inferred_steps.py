"""Steps of a loop that marks none, told from what repeats: the optimizer's step, or the loader.

Only offered, never taken by itself: a repetition is no promise. The result says ``inferred``.
"""

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.input_wait import is_input
from workbench.analysis.launches import Launches
from workbench.analysis.steps import Steps, step_times, warmup_of
from workbench.trace.table import Kind, Trace

LEAST_REPETITIONS = 3
"""Fewer are no repetition: two boundaries hold one step, and nothing to compare it with."""

_OPTIMIZER = re.compile(r"Optimizer\.step#.*")
_KINDS = (Kind.OPERATOR, Kind.ANNOTATION, Kind.OTHER)


def infer_steps(trace: Trace, launches: Launches) -> Steps | None:
    """Steps from one end of the optimizer's step to the next, else from one wait for a batch on.

    Of several optimizers the one that steps least often ends the step; of several loaders the
    busiest begins it. What lies before the first and behind the last boundary belongs to no whole
    step. ``None`` when nothing repeats.
    """
    optimizers = _repeated(trace, lambda name: _OPTIMIZER.fullmatch(name) is not None)
    if optimizers:
        rows = min(optimizers, key=len)
        boundaries = trace.events.end[rows]
    else:
        loaders = _repeated(trace, is_input)
        if not loaders:
            return None
        rows = max(loaders, key=len)
        boundaries = trace.events.ts[rows]
    start, end = boundaries[:-1], boundaries[1:]
    time = step_times(trace, launches, start, end)
    return Steps(
        source="inferred",
        numbers=tuple(range(len(start))),
        start=start,
        end=end,
        lane=int(trace.events.lane[rows[0]]),
        dropped=0,
        host_ns=(end - start).astype(np.int64),
        time_ns=time,
        warmup=warmup_of(trace, time, start, end),
    )


def _repeated(trace: Trace, wanted: Callable[[str], bool]) -> list[NDArray[np.intp]]:
    """Rows of each wanted name on one thread that occurs often enough, in time order."""
    events = trace.events
    named = np.isin(events.name, trace.name_codes(wanted)) & events.of_kind(*_KINDS)
    rows = np.flatnonzero(named)
    key = events.lane[rows].astype(np.int64) * len(trace.names) + events.name[rows]
    groups = (rows[key == one] for one in np.unique(key))
    found = (_outermost(events.ts[group], events.end[group], group) for group in groups)
    return [group for group in found if len(group) >= LEAST_REPETITIONS]


def _outermost(
    start: NDArray[np.int64], end: NDArray[np.int64], rows: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Rows that do not lie in an earlier one: a range may be written twice, one in the other."""
    reach = np.maximum.accumulate(end)
    outside = np.ones(len(rows), bool)
    outside[1:] = start[1:] >= reach[:-1]
    return rows[outside]
