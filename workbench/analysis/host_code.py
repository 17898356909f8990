"""Host code outside any operator, on a loop whose work runs on the CPU: how much, and where.

Where Python stacks were recorded, the place is the user's own line. Otherwise the records around a
stretch name it: what the thread did last before, and what it did next.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.host import claimed_spans, engine_nodes
from workbench.analysis.intervals import (
    Spans,
    covered_until,
    intersect,
    joined,
    subtract,
    total,
    union,
)
from workbench.analysis.nesting import innermost, nest
from workbench.analysis.ranges import Range
from workbench.analysis.steady import counted_ranges
from workbench.analysis.steps import Steps, step_codes
from workbench.analysis.sync_calls import LIBRARY_FRAME
from workbench.trace.table import Kind, Trace

PARTS = ("host_python", "host_other")
MOST_PLACES = 3
_RECORDS = (Kind.OPERATOR, Kind.ANNOTATION, Kind.RUNTIME, Kind.DRIVER)


@dataclass(frozen=True, kw_only=True)
class HostCode:
    """What the loop's thread spends outside operators in the steps that count."""

    steps: int
    time_ns: int
    """Their length together."""
    ns: int
    stacks: bool
    """Whether Python stacks were recorded, which slow Python down several times."""
    places: tuple[tuple[str, int], ...]
    """Lines, or the records around, longest first, with nanoseconds."""


def host_code(trace: Trace, steps: Steps | None) -> HostCode | None:
    """Sum the host code outside operators; ``None`` without complete steps."""
    counted = counted_ranges(steps)
    if steps is None or counted is None:
        return None
    start, end = counted
    window = Range(start=int(start[0]), end=int(end[-1]))
    claimed = claimed_spans(trace, window, steps)
    outside = intersect(joined(*(claimed[part] for part in PARTS)), Spans(start, end))
    outside = subtract(outside, _engine(trace))
    frames = _user_frames(trace, steps.lane, window)
    places = _lines(trace, frames, outside) if len(frames) else _around(trace, steps.lane, outside)
    return HostCode(
        steps=len(start),
        time_ns=int((end - start).sum()),
        ns=total(outside),
        stacks=len(trace.events.rows(Kind.PYTHON)) > 0,
        places=places,
    )


def _engine(trace: Trace) -> Spans:
    """While the autograd engine runs nodes, on whatever thread, a loop waits in backward()."""
    events = trace.events
    nodes = engine_nodes(trace, np.ones(len(events), bool))
    return union(events.ts[nodes], events.end[nodes])


def _user_frames(trace: Trace, lane: int, window: Range) -> NDArray[np.intp]:
    """Rows of the user's own Python frames on the thread of the loop."""
    events = trace.events
    own = trace.name_codes(lambda name: LIBRARY_FRAME.search(name) is None)
    found = (events.kind == Kind.PYTHON) & (events.lane == lane) & np.isin(events.name, own)
    return np.flatnonzero(found & (events.ts < window.end) & (events.end > window.start))


def _lines(trace: Trace, frames: NDArray[np.intp], outside: Spans) -> tuple[tuple[str, int], ...]:
    """The innermost frame of the user at each moment."""
    events = trace.events
    nesting = nest(frames, events.lane[frames], events.ts[frames], events.end[frames])
    cuts = np.unique(np.concatenate((nesting.start, nesting.end)))
    held = innermost(nesting, np.full(len(cuts), nesting.lane[0], np.int32), cuts)
    spent = np.diff(covered_until(outside, cuts), append=0)
    spent[-1] = 0
    inside = held >= 0
    names = events.name[nesting.row[held[inside]]]
    return _longest([(trace.names[code],) for code in names.tolist()], spent[inside])


def _around(trace: Trace, lane: int, outside: Spans) -> tuple[tuple[str, int], ...]:
    """What the thread did last before each stretch, and next behind it."""
    events = trace.events
    steps = step_codes(trace)
    rows = np.flatnonzero(
        (events.lane == lane) & events.of_kind(*_RECORDS) & ~np.isin(events.name, steps)
    )
    if not len(rows):
        return ()
    ended = rows[np.argsort(events.end[rows], kind="stable")]
    before = np.searchsorted(events.end[ended], outside.start, "right") - 1
    after = np.searchsorted(events.ts[rows], outside.end, "left")
    pairs: list[tuple[str, ...]] = [
        (
            trace.names[events.name[ended[b]]] if b >= 0 else "the start",
            trace.names[events.name[rows[a]]] if a < len(rows) else "the end",
        )
        for b, a in zip(before.tolist(), after.tolist(), strict=True)
    ]
    return _longest(pairs, outside.end - outside.start)


def _longest(
    places: list[tuple[str, ...]], spent: NDArray[np.int64]
) -> tuple[tuple[str, int], ...]:
    summed: dict[tuple[str, ...], int] = {}
    for place, ns in zip(places, spent.tolist(), strict=True):
        if ns > 0:
            summed[place] = summed.get(place, 0) + ns
    best = sorted(summed.items(), key=lambda each: (-each[1], each[0]))[:MOST_PLACES]
    return tuple((_said(place), ns) for place, ns in best)


def _said(place: tuple[str, ...]) -> str:
    return place[0] if len(place) == 1 else f"between {place[0]} and {place[1]}"
