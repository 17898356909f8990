"""Compilations inside the steps: after the first one, each says that something has changed."""

from dataclasses import dataclass

import numpy as np

from workbench.analysis.causes import python_cause, range_cause
from workbench.analysis.intervals import total, union
from workbench.analysis.steps import Steps
from workbench.trace.table import Kind, Trace


@dataclass(frozen=True, kw_only=True)
class Compilations:
    """torch.compile and Triton at work after the first complete step."""

    steps: int
    """Steps looked at."""
    steps_with: int
    """Of these, the ones in which something was compiled."""
    count: int
    ns: int
    """Host time in them."""


def compilations(trace: Trace, steps: Steps | None) -> Compilations | None:
    """Compilations in the complete steps but the first; ``None`` with fewer than two steps."""
    if steps is None or len(steps) < 2:
        return None
    events = trace.events
    ranges = trace.name_codes(lambda name: range_cause(name) == "compilation")
    frames = trace.name_codes(lambda name: python_cause(name) == "compilation")
    found = np.isin(events.name, ranges) & np.isin(events.kind, (Kind.OPERATOR, Kind.ANNOTATION))
    found |= np.isin(events.name, frames) & (events.kind == Kind.PYTHON)
    rows = np.flatnonzero(found)
    spans = union(events.ts[rows], events.end[rows])
    index = steps.step_of(spans.start)
    late = index >= 1
    return Compilations(
        steps=len(steps) - 1,
        steps_with=len(np.unique(index[late])),
        count=int(late.sum()),
        ns=total(union(spans.start[late], spans.end[late])),
    )
