"""Idle time that recurs: by cause, over the steps that are neither warm-up nor a first use.

Idle time belongs to the step whose launch ends it, as step times do. Where no step has a time (a
trace without steps, or with a single one), the whole window stands in.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import CAUSE_CODE
from workbench.analysis.idle import Idle
from workbench.analysis.kept_pieces import Lengths
from workbench.analysis.overlaps import is_graph_launch
from workbench.analysis.steps import Steps, step_codes
from workbench.trace.table import Trace

START_UP = ("kernel_loading", "allocation", "graph_capture", "compilation")
SHORT_NS = 1_000_000
"""Own choice: no operator of a healthy step keeps the host longer."""
PAUSE = 10
"""Own choice: a step that takes so many times the median is a pause in the loop, and no step."""
FEW_SHARE = 0.05
LEAST_STEPS = 4
"""Own choice: at most so many of the steps are pauses, and of fewer steps none."""
MOST_PLACES = 5
"""Operators named for a cause; the rest is small."""


@dataclass(frozen=True, kw_only=True)
class SteadyIdle:
    """What a device loses in the steps that count."""

    steps: int
    """Steps looked at: those with a steady time that are no pauses, else the complete ones; 0
    without any."""
    time_ns: int
    """Their times together; without a step time the length of the window."""
    by_cause: Mapping[str, int | None]
    """Idle nanoseconds; ``None``: this trace cannot show the cause."""
    short_ns: Mapping[str, int]
    """Of each cause, the pieces of at most a millisecond: many small losses, not one long one."""
    places: Mapping[str, tuple[tuple[str, int], ...]]
    """Per cause the operators or ranges that the host was in, longest first, with nanoseconds."""
    gap_count: int
    """How many pieces of idle time are spacing between queued kernels."""
    gap_median_ns: float | None
    graph_gap_ns: int
    """Of that spacing, the part before work that a launch of a graph had brought."""
    loading_steps: int
    """In how many of the steps a kernel was loaded."""
    start_up_ns: int = 0
    """Idle time of the whole window for what a program does once: loading, allocating, compiling
    and capturing, first uses included."""


def steady_numbers(steps: Steps | None) -> tuple[int, ...]:
    """Numbers of the steps whose times count: warm-up is left out."""
    return () if steps is None else steps.numbers[steps.first_steady :]


def usual_steps(steps: Steps | None) -> NDArray[np.bool_]:
    """Which steps have a time that counts and is no pause.

    One validation or checkpoint between two of a few steps can be nearly all of their time, and
    then says nothing about the others.
    """
    if steps is None:
        return np.zeros(0, bool)
    found = steps.steady.copy()
    times = steps.time_ns[steps.warmup :]
    if len(times) < LEAST_STEPS:
        return found
    pauses = times > PAUSE * np.median(times)
    if pauses.sum() <= max(1.0, FEW_SHARE * len(times)):
        found[np.flatnonzero(found)[pauses]] = False
    return found


def counted_ranges(steps: Steps | None) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Host starts and ends of the steps that count; all complete ones where none has a time."""
    if steps is None or not len(steps):
        return None
    first = steps.first_steady if steps.first_steady < len(steps) else 0
    return steps.start[first:], steps.end[first:]


def inside(
    ranges: tuple[NDArray[np.int64], NDArray[np.int64]] | None, at: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether each instant lies in one of the ranges; everywhere where there are none."""
    if ranges is None:
        return np.ones(len(at), bool)
    start, end = ranges
    index = np.searchsorted(start, at, "right") - 1
    return np.asarray((index >= 0) & (at < end[np.maximum(index, 0)]), bool)


def steady_idle(trace: Trace, idle: Idle, steps: Steps | None) -> SteadyIdle:
    """Sum the idle time of one device by cause over the steps that count."""
    pieces = idle.pieces
    usual = usual_steps(steps)
    numbers = () if steps is None else tuple(np.array(steps.numbers, np.int64)[usual].tolist())
    kept = ~pieces.first_use
    if numbers:
        kept &= np.isin(pieces.step, numbers)
    length = np.where(kept, pieces.length, 0)
    gaps = kept & (pieces.cause == CAUSE_CODE["kernel_gap"])
    loading = kept & (pieces.cause == CAUSE_CODE["kernel_loading"]) & (pieces.step >= 0)
    time = idle.range.length
    if numbers and steps is not None:
        time = int(steps.time_ns[usual[len(steps) - len(steps.time_ns) :]].sum())
    return SteadyIdle(
        steps=len(numbers) or (len(steps) if steps is not None else 0),
        time_ns=time,
        by_cause={
            cause: None if idle.by_cause[cause] is None else int(length[pieces.cause == code].sum())
            for cause, code in CAUSE_CODE.items()
        },
        short_ns={
            cause: int(length[(pieces.cause == code) & (length <= SHORT_NS)].sum())
            for cause, code in CAUSE_CODE.items()
        },
        places={
            cause: _places(trace, pieces.operator, length, pieces.cause == code)
            for cause, code in CAUSE_CODE.items()
        },
        gap_count=int(gaps.sum()),
        gap_median_ns=float(np.median(length[gaps])) if gaps.any() else None,
        graph_gap_ns=int(length[gaps & _of_graphs(trace, pieces.launch)].sum()),
        loading_steps=len(np.unique(pieces.step[loading])),
        start_up_ns=sum(idle.by_cause[cause] or 0 for cause in START_UP),
    )


def _of_graphs(trace: Trace, launch: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each call launched a graph."""
    graphs = trace.name_codes(is_graph_launch)
    name = trace.events.name[np.maximum(launch, 0)] if len(trace.events) else launch
    return (launch >= 0) & np.isin(name, graphs)


def _places(
    trace: Trace,
    operator: NDArray[np.int32],
    length: Lengths,
    chosen: NDArray[np.bool_],
) -> tuple[tuple[str, int], ...]:
    step = step_codes(trace)
    chosen = chosen & (operator >= 0) & (length > 0)
    chosen[chosen] = ~np.isin(trace.events.name[operator[chosen]], step)
    names, index = np.unique(trace.events.name[operator[chosen]], return_inverse=True)
    sums = np.zeros(len(names), np.int64)
    np.add.at(sums, index, length[chosen])
    found = zip((trace.names[int(name)] for name in names), sums.tolist(), strict=True)
    return tuple(sorted(found, key=lambda place: (-place[1], place[0]))[:MOST_PLACES])
