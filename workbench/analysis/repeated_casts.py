"""Weights that are cast to a lower precision more often than once a pass.

Which tensor an operator took is not in a trace, only its shape. But the backward pass names each
weight once, when it accumulates its gradient, and undoes each cast of a weight once. So casts of a
shape are held against the accumulations of the same shape: twelve equal layers have twelve of both.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.intervals import total, union
from workbench.analysis.launches import Launches
from workbench.analysis.steady import counted_ranges, inside
from workbench.analysis.steps import Steps
from workbench.trace.table import DEVICE_WORK, Kind, Trace

CAST = re.compile(r"^aten::_to_copy$")
CAST_BACKWARD = re.compile(r"^autograd::engine::evaluate_function: ToCopyBackward\d*$")
ACCUMULATE = re.compile(r"^torch::autograd::AccumulateGrad$")
FLOAT = re.compile(r'^\["float"')


@dataclass(frozen=True, kw_only=True)
class RepeatedCasts:
    """Casts of weights in the steps that count."""

    weights: int
    """Gradients accumulated into weights of the shapes that are cast."""
    casts: int
    """Casts of tensors of these shapes that the backward pass undid."""
    host_ns: int
    device_ns: int | None
    steps: int
    time_ns: int
    """Length of these steps on the host; without steps from first to last operator."""


def repeated_casts(trace: Trace, launches: Launches, steps: Steps | None) -> RepeatedCasts | None:
    """Count casts of weights; ``None`` without shapes or without a backward pass."""
    events = trace.events
    ranges = counted_ranges(steps)
    gradients = _rows(trace, ACCUMULATE, ranges)
    gradients = gradients[events.shapes[gradients] >= 0]
    undone = len(_rows(trace, CAST_BACKWARD, ranges))
    casts = _rows(trace, CAST, ranges)
    casts = casts[events.shapes[casts] >= 0]
    if not len(gradients) or not len(casts) or not undone:
        return None
    floats = np.array([i for i, t in enumerate(trace.types) if FLOAT.match(t)], np.int32)
    casts = casts[np.isin(events.types[casts], floats)]
    first = {code: _first(trace.shapes[code]) for code in np.unique(events.shapes[casts]).tolist()}
    shapes = {code: _first(trace.shapes[code]) for code in np.unique(events.shapes[gradients])}
    wanted = {text for text in shapes.values() if text}
    codes = [code for code, text in first.items() if text in wanted]
    casts = casts[np.isin(events.shapes[casts], codes)]
    used = {first[code] for code in np.unique(events.shapes[casts]).tolist()}
    held = [code for code, text in shapes.items() if text in used]
    work = events.rows(*DEVICE_WORK)
    work = work[launches.launch[work] >= 0]
    inner = _inside_rows(trace, casts, launches.launch[work])
    operators = events.rows(Kind.OPERATOR)
    spans = ranges or (events.ts[operators][:1], events.end[operators].max(keepdims=True))
    return RepeatedCasts(
        weights=int(np.isin(events.shapes[gradients], held).sum()),
        casts=min(len(casts), undone),
        host_ns=total(union(events.ts[casts], events.end[casts])),
        device_ns=int(events.dur[work[inner]].sum()) if len(work) else None,
        steps=0 if ranges is None else len(ranges[0]),
        time_ns=int((spans[1] - spans[0]).sum()),
    )


def _rows(
    trace: Trace,
    pattern: re.Pattern[str],
    ranges: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
) -> NDArray[np.intp]:
    events = trace.events
    codes = trace.name_codes(lambda name: pattern.match(name) is not None)
    rows = np.flatnonzero((events.kind == Kind.OPERATOR) & np.isin(events.name, codes))
    return rows[inside(ranges, events.ts[rows])]


def _first(shapes: str) -> str:
    """The shape of the first input as text, such as ``[256,128]``; empty for none or a scalar."""
    found = re.match(r"\[(\[[\d,]+\])", shapes)
    return found.group(1) if found else ""


def _inside_rows(
    trace: Trace, rows: NDArray[np.intp], calls: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Whether each call lies in one of the rows, on its thread."""
    events = trace.events
    found = np.zeros(len(calls), bool)
    for lane in np.unique(events.lane[rows]).tolist():
        mine = rows[events.lane[rows] == lane]
        spans = union(events.ts[mine], events.end[mine])
        here = np.flatnonzero(events.lane[calls] == lane)
        found[here] = inside((spans.start, spans.end), events.ts[calls[here]])
    return found
