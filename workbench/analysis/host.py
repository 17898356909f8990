"""Where the loop's thread spends its time when no device works: parts that sum to the range.

The first part that matches wins: input, communication, optimizer, backward, forward, other
operators; what is left is Python where stack records cover it, and unnamed host code otherwise.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.causes import OLD_NODE_PATTERN
from workbench.analysis.input_wait import input_rows, is_input
from workbench.analysis.intervals import (
    EMPTY,
    Spans,
    clip,
    intersect,
    joined,
    subtract,
    total,
    union,
)
from workbench.analysis.steps import step_codes
from workbench.trace.table import Kind, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from workbench.analysis.ranges import Range
    from workbench.analysis.steps import Steps

PARTS = (
    "input",
    "communication",
    "optimizer",
    "backward",
    "forward",
    "other_operators",
    "host_python",
    "host_other",
)

OPTIMIZER_RANGE = re.compile(r"Optimizer\.(step|zero_grad)#")
_NODE = "autograd::engine::"
_OLD_NODE = re.compile(OLD_NODE_PATTERN)
_COLLECTIVE_CALL = re.compile(r"_?c10d(_functional)?::|record_param_comms$")
_NATIVE = re.compile(r"(?!autograd::|torch::autograd::)[\w.]+::")
"""Operators with a namespace are torch's or an extension's own code, not Python's."""
_BACKEND = re.compile(r"(gloo|mpi|ucc|ccl|xccl):", re.IGNORECASE)
_RECORDS = (Kind.OPERATOR, Kind.ANNOTATION, Kind.RUNTIME, Kind.DRIVER, Kind.PYTHON, Kind.OTHER)
_RANGES = (Kind.OPERATOR, Kind.ANNOTATION)


def loop_lane(trace: Trace, steps: Steps | None) -> int | None:
    """The lane of the loop's thread: of the steps, or else that with most operator time."""
    if steps is not None:
        return steps.lane
    events = trace.events
    rows = _operators(trace)
    if not len(rows):
        return None
    rows = rows[np.argsort(events.lane[rows], kind="stable")]
    threads = np.split(rows, np.flatnonzero(np.diff(events.lane[rows])) + 1)
    busiest = max(threads, key=lambda mine: total(_spans(trace, mine)))
    return int(events.lane[busiest[0]])


def host_breakdown(trace: Trace, range: Range, steps: Steps | None) -> dict[str, int | None]:  # noqa: A002
    """Nanoseconds of the range per part; they sum to its length exactly.

    ``None`` marks what the trace cannot hold: ``input`` without any loader record, ``host_python``
    without stack records.
    """
    claimed = claimed_spans(trace, range, steps)
    parts: dict[str, int | None] = {name: total(claimed[name]) for name in PARTS}
    if not len(input_rows(trace)):
        parts["input"] = None
    if not len(trace.events.rows(Kind.PYTHON)):
        parts["host_python"] = None
    return parts


def claimed_spans(trace: Trace, range: Range, steps: Steps | None) -> dict[str, Spans]:  # noqa: A002
    """The stretches of the range that each part takes; together they are the range."""
    left = Spans(np.array([range.start]), np.array([range.end]))
    claimed = dict.fromkeys(PARTS, EMPTY)
    for name, spans in _claims(trace, loop_lane(trace, steps)).items():
        claimed[name] = intersect(left, clip(spans, range.start, range.end))
        left = subtract(left, claimed[name])
    claimed["host_other"] = left
    return claimed


def _claims(trace: Trace, lane: int | None) -> dict[str, Spans]:
    """What each part would claim of the thread, in the order in which they are asked."""
    if lane is None:
        return {}
    here = trace.events.lane == lane
    operators = _operators(trace)
    operators = operators[here[operators]]
    python = np.flatnonzero(here & (trace.events.kind == Kind.PYTHON))
    return {
        "input": _spans(trace, _named(trace, here, is_input)),
        "communication": _communication(trace, here, operators),
        "optimizer": _spans(
            trace, _named(trace, here, lambda name: bool(OPTIMIZER_RANGE.match(name)))
        ),
        "backward": backward_spans(trace, here),
        "forward": forward_spans(trace, here, operators),
        "other_operators": _spans(trace, operators),
        "host_python": _spans(trace, python),
    }


def _communication(trace: Trace, here: NDArray[np.bool_], operators: NDArray[np.intp]) -> Spans:
    """Calls into collectives, and the backend's work while the thread computes nothing.

    The backend works beside the thread, whichever lane its ranges are drawn on. Nodes of autograd
    and functions in Python may hold a blocking wait that leaves no record, so what they do between
    their operators hides nothing; nor does an operator that calls a collective itself.
    """
    events = trace.events
    calls = _named(trace, here, lambda name: bool(_COLLECTIVE_CALL.match(name)))
    anywhere = np.ones(len(events), bool)
    backend = _named(trace, anywhere, lambda name: bool(_BACKEND.match(name)))
    operators = np.setdiff1d(operators, np.union1d(calls, backend))
    start, end = events.ts[operators], events.end[operators]
    native = trace.name_codes(lambda name: bool(_NATIVE.match(name)))
    computing = np.isin(events.name[operators], native)
    computing[:-1] |= start[1:] >= end[:-1]
    computing[-1:] = True
    called = np.sort(events.ts[np.union1d(calls, backend[here[backend]])])
    computing &= np.searchsorted(called, start) == np.searchsorted(called, end)
    waited = subtract(_spans(trace, backend), union(start[computing], end[computing]))
    return joined(waited, _spans(trace, calls))


def backward_spans(
    trace: Trace, here: NDArray[np.bool_], beside: NDArray[np.bool_] | None = None
) -> Spans:
    """Nodes of the autograd engine, its own code between two of them, and our range around it.

    Args:
        trace: The event table.
        here: Rows of one thread.
        beside: Rows of more threads: where a record of them begins between two nodes, something
            else than the engine ran.
    """
    ranges = _spans(trace, _named(trace, here, lambda name: name == "backward"))
    nodes = _spans(trace, engine_nodes(trace, here))
    if not len(nodes.start):
        return ranges
    records = here if beside is None else here | beside
    starts = trace.events.ts[records & trace.events.of_kind(*_RECORDS)]
    after, before = nodes.end[:-1], nodes.start[1:]
    engine = np.searchsorted(starts, after) == np.searchsorted(starts, before)
    return joined(nodes, Spans(after[engine], before[engine]), ranges)


def engine_nodes(trace: Trace, where: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Rows of the nodes of the autograd engine; before torch 1.10 only the nodes' own names."""
    if any(name.startswith(_NODE) for name in trace.names):
        return _named(trace, where, lambda name: name.startswith(_NODE))
    return _named(trace, where, lambda name: bool(_OLD_NODE.search(name)))


def forward_spans(trace: Trace, here: NDArray[np.bool_], operators: NDArray[np.intp]) -> Spans:
    """Our own range, and operators whose sequence number a node of the engine answers."""
    events = trace.events
    ranges = _named(trace, here, lambda name: name == "forward")
    nodes = engine_nodes(trace, np.ones(len(events), bool))
    answered = np.unique(events.sequence[nodes])
    partner = np.isin(events.sequence[operators], answered[answered >= 0])
    return _spans(trace, np.union1d(ranges, operators[partner]))


def _operators(trace: Trace) -> NDArray[np.intp]:
    """Rows of operators; before torch 1.12 the steps themselves were of that category."""
    rows = trace.events.rows(Kind.OPERATOR)
    steps = step_codes(trace)
    return rows[~np.isin(trace.events.name[rows], steps)]


def _named(
    trace: Trace, where: NDArray[np.bool_], predicate: Callable[[str], bool]
) -> NDArray[np.intp]:
    """Rows of host ranges and operators whose name the predicate takes."""
    codes = trace.name_codes(predicate)
    kinds = (*_RANGES, Kind.OTHER)
    events = trace.events
    return np.flatnonzero(where & np.isin(events.name, codes) & events.of_kind(*kinds))


def _spans(trace: Trace, rows: NDArray[np.intp]) -> Spans:
    return union(trace.events.ts[rows], trace.events.end[rows])
