"""A slice of a trace, by time or by steps."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import TraceError
from workbench.trace.rows import moments, taken
from workbench.trace.table import DEVICE_WORK, Events, Flows, Kind, Trace

_STEP = re.compile(r"ProfilerStep#(\d{1,18})$")
_START = ord("s")
Mask = NDArray[np.bool_]


def cut(
    trace: Trace,
    *,
    start_ns: int | None = None,
    end_ns: int | None = None,
    steps: tuple[int, int] | None = None,
) -> Trace:
    """The part of a trace in a range of time, or of some steps with the device work they launched.

    Records that cross the edge of the range are cut there. With ``steps``, the range is that of the
    steps on the host; device work belongs to the step whose call launched it, and is whole.

    Args:
        trace: The event table.
        start_ns: Start of the range, in nanoseconds after the trace's first event.
        end_ns: End of the range.
        steps: First and last step, by the number that ``ProfilerStep#`` carries, both kept.

    Raises:
        TraceError: There is no such step, or nothing in the range.
    """
    if steps is not None and (start_ns is not None or end_ns is not None):
        raise TraceError("give steps or a range of time, not both.")
    events = trace.events
    low = 0 if start_ns is None else start_ns
    high = int(events.end.max(initial=0)) + 1 if end_ns is None else end_ns
    if steps is not None:
        low, high = _range_of(trace, steps)
    if high <= low:
        raise TraceError(f"the range from {low / 1e3:,} us to {high / 1e3:,} us is empty.")
    start = np.maximum(events.ts, low)
    end = np.minimum(events.end, high)
    keep = _inside(events, low, high)
    device_end = high
    if steps is not None:
        work = _launched(events, keep)
        start[work], end[work] = events.ts[work], events.end[work]
        device_end = int(end[work].max(initial=high))
        lost = np.isin(events.kind, DEVICE_WORK) & (events.correlation > 0) & ~work
        keep = (keep & ~lost) | work
    if not keep.any():
        raise TraceError(
            f"there is no record between {low / 1e3:,} us and {high / 1e3:,} us; "
            f"the trace {trace.source} ends at {events.end.max(initial=0) / 1e3:,} us."
        )
    told = {"source": trace.source, "start_us": low / 1e3, "end_us": high / 1e3, "steps": steps}
    arrows = _arrows(trace.flows, low, high, follow=steps is not None)
    return _taken(trace, keep, start, end - start, arrows=arrows, span=(low, device_end), told=told)


def _range_of(trace: Trace, steps: tuple[int, int]) -> tuple[int, int]:
    events = trace.events
    numbers = {}
    for code, name in enumerate(trace.names):
        match = _STEP.match(name)
        if match:
            numbers[code] = int(match.group(1))
    rows = events.rows(Kind.ANNOTATION)
    rows = rows[np.isin(events.name[rows], list(numbers))]
    if not len(rows):
        raise TraceError(
            f"{trace.source} marks no steps (ProfilerStep#N): give a range of time instead."
        )
    found = np.array([numbers[code] for code in events.name[rows].tolist()])
    chosen = rows[(found >= steps[0]) & (found <= steps[1])]
    if not len(chosen):
        raise TraceError(
            f"{trace.source} has no step {steps[0]} to {steps[1]}: "
            f"its steps are {found.min()} to {found.max()}."
        )
    return int(events.ts[chosen].min()), int(events.end[chosen].max())


def _inside(events: Events, low: int, high: int) -> Mask:
    return np.asarray((events.ts < high) & ((events.end > low) | (events.ts >= low)))


def _launched(events: Events, keep: Mask) -> Mask:
    """Device work whose launching call is kept."""
    calls = keep & np.isin(events.kind, (Kind.RUNTIME, Kind.DRIVER)) & (events.correlation > 0)
    of_device = np.isin(events.kind, (*DEVICE_WORK, Kind.SYNC))
    return of_device & np.isin(events.correlation, events.correlation[calls])


def _arrows(flows: Flows, low: int, high: int, *, follow: bool) -> Mask:
    """Arrows with all their points in the range; with ``follow`` those that start there."""
    inside = (flows.ts >= low) & (flows.ts < high)
    key = np.stack((flows.id, flows.category.astype(np.int64)), axis=1)
    _, arrow = np.unique(key, axis=0, return_inverse=True)
    arrow = arrow.reshape(-1)
    if follow:
        return np.isin(arrow, arrow[inside & (flows.phase == _START)])
    return ~np.isin(arrow, arrow[~inside])


def _taken(
    trace: Trace,
    keep: Mask,
    start: NDArray[np.int64],
    dur: NDArray[np.int64],
    *,
    arrows: Mask,
    span: tuple[int, int],
    told: dict[str, Any],
) -> Trace:
    rows = np.flatnonzero(keep)
    rows = rows[np.lexsort((-dur[rows], start[rows]))]
    first = int(start[rows[0]])
    return replace(
        taken(trace, rows, ts=start[rows] - first, dur=dur[rows]),
        flows=moments(trace.flows, arrows, first),
        memory=moments(trace.memory, _between(trace.memory.ts, span), first),
        instants=moments(trace.instants, _between(trace.instants.ts, span), first),
        counters=moments(trace.counters, _between(trace.counters.ts, span), first),
        base_ns=None if trace.base_ns is None else trace.base_ns + first,
        header={**trace.header, "workbench_slice": told},
    )


def _between(ts: NDArray[np.int64], span: tuple[int, int]) -> Mask:
    return np.asarray((ts >= span[0]) & (ts < span[1]))
