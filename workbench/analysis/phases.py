"""Forward, backward and optimizer: time on the host, time on the devices, launches, operators.

A phase is told on each thread by itself, the first that matches: input (waiting in a loader),
optimizer (``Optimizer.step`` and ``zero_grad``), backward (nodes of the autograd engine and the
engine between two of them while no other thread begins anything), forward (our own range, or
operators whose sequence number a node answers). An instant in which several threads work counts
once for the host, for the first of the phases. Device work belongs to the phase in which its
launching call began, whenever it ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import (
    NODE_PATTERN,
    OLD_NODE_PATTERN,
    OPTIMIZER_PATTERN,
    codes_matching,
    operator_rows,
)
from workbench.analysis.host import OPTIMIZER_RANGE, backward_spans, forward_spans
from workbench.analysis.input_wait import input_rows
from workbench.analysis.intervals import (
    EMPTY,
    Spans,
    contains,
    covered_until,
    joined,
    subtract,
    total,
    union,
)
from workbench.analysis.nesting import distinct, nest
from workbench.trace.table import DEVICE_WORK, Kind, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from workbench.analysis.launches import Launches

PHASES = ("input", "forward", "backward", "optimizer", "other", "unknown")
"""``other``: everything else in the steps; ``unknown``: device work without a launch record."""
PHASE_COLUMNS = ("phase", "steps", "host_ns", "device_ns", "launches", "operators")

_ASKED = ("input", "optimizer", "backward", "forward")
_HOST = (Kind.OPERATOR, Kind.ANNOTATION, Kind.OTHER)


class Ranges(NamedTuple):
    """Host ranges to look at: those of the steps that count, or the window."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    steps: int
    """0: no steps were marked."""


def phase_table(trace: Trace, launches: Launches, ranges: Ranges) -> pd.DataFrame | None:
    """One row a phase, over all the ranges together; ``None`` without any operator.

    Columns ``phase, steps, host_ns, device_ns, launches, operators``. The host's time sums to the
    ranges. ``device_ns`` and ``launches`` are missing where no device work was recorded, forward
    where nothing tells it (no backward pass, no range of ours), input without a loader. Operators
    are those called from Python or from a node of the engine, without what an operator calls.
    """
    import pandas as pd

    if not operator_rows(trace).any():
        return None
    by_lane = _by_lane(trace)
    unseen = {
        name
        for name in ("input", "forward")
        if not any(len(spans[name].start) for spans in by_lane.values())
    }
    host = _host_time(by_lane, ranges)
    device, launched = _device_time(trace, launches, by_lane, ranges)
    called = _operators(trace, by_lane, ranges)
    has_work = len(trace.events.rows(*DEVICE_WORK)) > 0
    rows: list[tuple[object, ...]] = []
    for phase in PHASES:
        if phase == "unknown":
            if device[phase]:
                rows.append((phase, ranges.steps, None, device[phase], None, None))
        elif phase in unseen:
            rows.append((phase, ranges.steps, None, None, None, None))
        else:
            work = (device[phase], launched[phase]) if has_work else (None, None)
            rows.append((phase, ranges.steps, host[phase], *work, called[phase]))
    table = pd.DataFrame(rows, columns=list(PHASE_COLUMNS))
    return table.astype(dict.fromkeys(PHASE_COLUMNS[2:], "Int64"))


def _by_lane(trace: Trace) -> dict[int, dict[str, Spans]]:
    """Per thread what each phase claims of it, none twice."""
    events = trace.events
    operators = np.flatnonzero(operator_rows(trace))
    waits = input_rows(trace)
    optimizer = _named(trace, lambda name: bool(OPTIMIZER_RANGE.match(name)))
    ours = _named(trace, lambda name: name in ("forward", "backward"))
    found = {}
    marked = np.concatenate((operators, waits, optimizer, ours))
    lanes = distinct(events.lane[marked])
    threads = np.isin(events.lane, lanes)
    for lane in lanes.tolist():
        here = events.lane == lane
        spans = {
            "input": _spans(trace, waits[here[waits]]),
            "optimizer": _spans(trace, optimizer[here[optimizer]]),
            "backward": backward_spans(trace, here, threads),
            "forward": forward_spans(trace, here, operators[here[operators]]),
        }
        claimed = EMPTY
        for name in _ASKED:
            spans[name] = subtract(spans[name], claimed)
            claimed = joined(claimed, spans[name])
        found[lane] = spans
    return found


def _host_time(by_lane: dict[int, dict[str, Spans]], ranges: Ranges) -> dict[str, int]:
    whole = union(ranges.start, ranges.end)
    left, found = total(whole), {}
    claimed = EMPTY
    for name in _ASKED:
        spans = subtract(joined(*(each[name] for each in by_lane.values())), claimed)
        claimed = joined(claimed, spans)
        inside = covered_until(spans, whole.end) - covered_until(spans, whole.start)
        found[name] = int(inside.sum())
        left -= found[name]
    return {**found, "other": left}


def _device_time(
    trace: Trace, launches: Launches, by_lane: dict[int, dict[str, Spans]], ranges: Ranges
) -> tuple[dict[str, int], dict[str, int]]:
    """Summed device work and number of launching calls by phase of the call."""
    events = trace.events
    work = events.rows(*DEVICE_WORK)
    call = launches.launch[work]
    lost = work[call < 0]
    whole = union(ranges.start, ranges.end)
    unknown = int(events.dur[lost[contains(whole, events.ts[lost])]].sum())
    work, call = work[call >= 0], call[call >= 0]
    chosen = contains(whole, events.ts[call])
    work, call = work[chosen], call[chosen]
    phase = _phase_of(events.lane[call], events.ts[call], by_lane)
    time, count = dict.fromkeys(PHASES, 0), dict.fromkeys(PHASES, 0)
    for code, name in enumerate(PHASES):
        mine = phase == code
        time[name] = int(events.dur[work[mine]].sum())
        count[name] = len(distinct(call[mine]))
    return {**time, "unknown": unknown}, count


def _operators(
    trace: Trace, by_lane: dict[int, dict[str, Spans]], ranges: Ranges
) -> dict[str, int]:
    """Operators that no other operator calls: engine nodes and optimizer ranges only hold them."""
    events = trace.events
    rows = np.flatnonzero(operator_rows(trace))
    holders = (NODE_PATTERN, OLD_NODE_PATTERN, OPTIMIZER_PATTERN)
    holds = np.isin(events.name[rows], np.concatenate([codes_matching(trace, p) for p in holders]))
    rows = rows[~holds]
    nesting = nest(rows, events.lane[rows], events.ts[rows], events.end[rows])
    top = nesting.parent < 0
    start, lane = nesting.start[top], nesting.lane[top]
    inside = contains(union(ranges.start, ranges.end), start)
    phase = _phase_of(lane[inside], start[inside], by_lane)
    return {name: int((phase == code).sum()) for code, name in enumerate(PHASES)}


def _phase_of(
    lane: NDArray[np.int32], at: NDArray[np.int64], by_lane: dict[int, dict[str, Spans]]
) -> NDArray[np.int64]:
    """Place in ``PHASES`` of each instant on a thread."""
    found = np.full(len(at), PHASES.index("other"))
    for number in np.unique(lane).tolist():
        mine = np.flatnonzero(lane == number)
        for name, spans in by_lane.get(number, {}).items():
            found[mine[contains(spans, at[mine])]] = PHASES.index(name)
    return found


def _named(trace: Trace, predicate: Callable[[str], bool]) -> NDArray[np.intp]:
    codes = trace.name_codes(predicate)
    events = trace.events
    return np.flatnonzero(np.isin(events.name, codes) & events.of_kind(*_HOST))


def _spans(trace: Trace, rows: NDArray[np.intp]) -> Spans:
    return union(trace.events.ts[rows], trace.events.end[rows])


def phases_at(trace: Trace, lane: NDArray[np.int32], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place in ``PHASES`` of each instant on a thread; ``other`` where nothing tells."""
    return _phase_of(lane, at, _by_lane(trace))
