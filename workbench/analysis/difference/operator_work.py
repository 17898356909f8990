"""Framework operators of one trace, by name and step: on the host and on the device."""

from typing import NamedTuple

import numpy as np

from workbench.analysis.difference.by_step import ByStep, counted_steps, tabulate
from workbench.analysis.launches import Launches
from workbench.analysis.operators import operator_calls
from workbench.analysis.steps import Steps
from workbench.trace.table import Trace


class OperatorWork(NamedTuple):
    """The same operators twice; neither counts anything that another operator called."""

    host: ByStep
    device: ByStep | None
    """``None`` where no device work was recorded."""


def operator_work(trace: Trace, launches: Launches, steps: Steps | None) -> OperatorWork | None:
    """Operators by name; ``None`` when none was recorded.

    An operator belongs to the step in which it begins, on whatever thread. Host time leaves out
    the operators that it calls, device time is of the work that it launched by itself: both sum
    over all names without counting anything twice.
    """
    found = operator_calls(trace, launches)
    counted = counted_steps(steps)
    step = np.zeros(len(found.name), np.int64)
    if steps is not None and len(counted):
        place = steps.step_of(found.nesting.start)
        step = np.where(place < counted[0], -1, place - counted[0])
    inside = step >= 0
    if not len(found.name):
        return None
    codes, row = np.unique(found.name[inside], return_inverse=True)
    names = [trace.names[code] for code in codes]

    def by_step(ns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> ByStep:
        return tabulate(
            names,
            [""] * len(names),
            row=row.astype(np.int64),
            step=step[inside],
            ns=ns[inside],
            steps=max(1, len(counted)),
            calls=found.calls[inside],
        )

    device = None if found.device_self is None else by_step(found.device_self)
    return OperatorWork(by_step(found.host_self), device)
