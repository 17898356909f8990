"""Small things that a step does for nothing, each told by operators that follow one another.

They are the ones of torch's own pattern matcher (torch.profiler._pattern_matcher): tensors made on
the host and copied to the device at once, a bias that the normalisation behind it takes away again,
gradients that are filled with zeros instead of dropped. The last step that counts is looked at.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.copies import copy_name
from workbench.analysis.launches import Launches
from workbench.analysis.nesting import Nesting, innermost, nest
from workbench.analysis.operator_shapes import decoded
from workbench.analysis.steady import counted_ranges
from workbench.analysis.steps import Steps
from workbench.trace.table import Kind, Trace

MADE = re.compile(r"^aten::(zeros|ones|full|rand|randn|randint|arange|linspace|eye|fill_|zero_)$")
MOVED = re.compile(r"^aten::(to|_to_copy|copy_)$")
CONVOLUTION = re.compile(r"^aten::conv[123]d$")
NORMALISATION = re.compile(r"^aten::(batch_norm|instance_norm)$")
ZERO_GRAD = re.compile(r"^Optimizer\.zero_grad#")
ZEROED = re.compile(r"^aten::(zero_|_foreach_zero_)$")


@dataclass(frozen=True, kw_only=True)
class SmallPatterns:
    """How often each occurs in one step, and what it takes there."""

    step_ns: int
    """Length of the step on the host."""
    copies: int
    """Tensors made on the host and copied right after."""
    copies_ns: int
    """Host time of making and copying them."""
    biases: int
    """Convolutions with a bias directly in front of batch or instance norm."""
    zeroed: int
    """Operators that fill gradients with zeros."""
    zeroed_ns: int
    """Host time of zero_grad where it fills."""


def small_patterns(trace: Trace, launches: Launches, steps: Steps | None) -> SmallPatterns | None:
    """Look at the last step that counts; ``None`` without steps."""
    ranges = counted_ranges(steps)
    if ranges is None:
        return None
    start, end = int(ranges[0][-1]), int(ranges[1][-1])
    events = trace.events
    within = (events.ts >= start) & (events.ts < end)
    rows = np.flatnonzero(within & (events.kind == Kind.OPERATOR))
    rows = rows[np.lexsort((-events.end[rows], events.ts[rows]))]
    nesting = nest(rows, events.lane[rows], events.ts[rows], events.end[rows])
    copies, copies_ns = _copies(trace, launches, nesting, (start, end))
    zeroed, zeroed_ns = _zeroed(trace, nesting, np.flatnonzero(within))
    return SmallPatterns(
        step_ns=end - start,
        copies=copies,
        copies_ns=copies_ns,
        biases=_biases(trace, nesting),
        zeroed=zeroed,
        zeroed_ns=zeroed_ns,
    )


def _copies(
    trace: Trace, launches: Launches, nesting: Nesting, step: tuple[int, int]
) -> tuple[int, int]:
    events = trace.events
    rows = events.rows(Kind.MEMCPY)
    rows = rows[launches.launch[rows] >= 0]
    rows = rows[[copy_name(trace.names[n]).kind == "HtoD" for n in events.name[rows].tolist()]]
    call = launches.launch[rows]
    call = call[(events.ts[call] >= step[0]) & (events.ts[call] < step[1])]
    if not len(call) or not len(nesting.row):
        return 0, 0
    previous = _previous_siblings(nesting)
    found: dict[int, int] = {}
    for at in innermost(nesting, events.lane[call], events.ts[call]).tolist():
        top = _outermost(trace, nesting, at, MOVED)
        made = -1 if top < 0 else int(previous[top])
        if made >= 0 and MADE.match(_name(trace, nesting, made)):
            found[top] = int(nesting.end[top] - nesting.start[made])
    return len(found), sum(found.values())


def _biases(trace: Trace, nesting: Nesting) -> int:
    events = trace.events
    previous = _previous_siblings(nesting)
    codes = trace.name_codes(lambda name: NORMALISATION.match(name) is not None)
    found = 0
    for at in np.flatnonzero(np.isin(events.name[nesting.row], codes)).tolist():
        before = int(previous[at])
        if before < 0 or not CONVOLUTION.match(_name(trace, nesting, before)):
            continue
        code = int(events.shapes[nesting.row[before]])
        dims = decoded(trace.shapes[code]) if code >= 0 else []
        found += len(dims) > 2 and bool(dims[2])
    return found


def _zeroed(trace: Trace, nesting: Nesting, within: NDArray[np.intp]) -> tuple[int, int]:
    events = trace.events
    codes = trace.name_codes(lambda name: ZERO_GRAD.match(name) is not None)
    ranges = within[np.isin(events.name[within], codes)]
    ranges = ranges[np.isin(events.kind[ranges], (Kind.ANNOTATION, Kind.OPERATOR))]
    zeros = trace.name_codes(lambda name: ZEROED.match(name) is not None)
    at = np.flatnonzero(np.isin(events.name[nesting.row], zeros))
    count, ns = 0, 0
    for row in ranges.tolist():
        lane = nesting.lane[at] == events.lane[row]
        begins = (nesting.start[at] >= events.ts[row]) & (nesting.start[at] < events.end[row])
        inside = int((lane & begins).sum())
        count += inside
        ns += int(events.dur[row]) if inside else 0
    return count, ns


def _previous_siblings(nesting: Nesting) -> NDArray[np.int64]:
    """For each record the one before it under the same parent on its thread, or -1."""
    key = np.lexsort((nesting.start, nesting.parent, nesting.lane))
    found = np.full(len(nesting.row), -1, np.int64)
    same = (nesting.parent[key[1:]] == nesting.parent[key[:-1]]) & (
        nesting.lane[key[1:]] == nesting.lane[key[:-1]]
    )
    found[key[1:][same]] = key[:-1][same]
    return found


def _outermost(trace: Trace, nesting: Nesting, at: int, pattern: re.Pattern[str]) -> int:
    """The outermost of an unbroken row of enclosing records of these names, or -1."""
    found = -1
    while at >= 0 and pattern.match(_name(trace, nesting, at)):
        found, at = at, int(nesting.parent[at])
    return found


def _name(trace: Trace, nesting: Nesting, at: int) -> str:
    return trace.names[int(trace.events.name[nesting.row[at]])]
