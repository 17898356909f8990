"""When torch.compile and Triton are at work, and whether what they made runs.

Both whatever steps a trace has.
"""

import re

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import python_cause, range_cause
from workbench.analysis.intervals import Spans, covered_until, union
from workbench.trace.table import Kind, Trace

LEAST_SHARE = 0.05
"""Own choice: a step that compiles for less of its time is much like the others."""

RUNS_COMPILED = re.compile(r"^(Torch-Compiled Region|CompiledFunction|## Call CompiledFxGraph)")
"""Ranges in which code that torch.compile made is executed."""

Times = NDArray[np.int64]


def compiling_spans(trace: Trace) -> Spans:
    """Stretches in which something is compiled, on whatever thread."""
    events = trace.events
    ranges = trace.name_codes(lambda name: range_cause(name) == "compilation")
    frames = trace.name_codes(lambda name: python_cause(name) == "compilation")
    found = np.isin(events.name, ranges) & events.of_kind(Kind.OPERATOR, Kind.ANNOTATION)
    found |= np.isin(events.name, frames) & (events.kind == Kind.PYTHON)
    rows = np.flatnonzero(found)
    return union(events.ts[rows], events.end[rows])


def runs_compiled(trace: Trace) -> bool:
    """Whether code that torch.compile made is executed."""
    codes = trace.name_codes(lambda name: RUNS_COMPILED.match(name) is not None)
    events = trace.events
    ranges = events.of_kind(Kind.OPERATOR, Kind.ANNOTATION)
    return bool((np.isin(events.name, codes) & ranges).any())


def leading_compilations(spans: Spans, start: Times, end: Times) -> int:
    """How many of the first steps compile, one behind the other.

    0 where more than half of all do: that is no warm-up, but a loop that compiles again and again.
    """
    if not len(spans.start) or not len(start):
        return 0
    spent = covered_until(spans, end) - covered_until(spans, start)
    steady = np.flatnonzero(spent < LEAST_SHARE * (end - start))
    leading = int(steady[0]) if len(steady) else len(start)
    return leading if leading <= len(start) // 2 else 0
