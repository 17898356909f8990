"""The idle gaps of a device, each with the work that ends it and the call that launched that."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import work_rows
from workbench.analysis.intervals import gaps, union
from workbench.analysis.launches import Launches
from workbench.analysis.ranges import Range
from workbench.trace.table import Trace

Rows = NDArray[np.int32]
Times = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max
BLOCK = 1 << 13
"""Gaps looked at together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IdleGaps:
    """Maximal stretches in which no stream of a device works, on the host's clock.

    They reach beyond the range that is asked about, so that a gap cut by it keeps its true start.
    """

    start: Times
    end: Times
    next_work: Rows
    """Row of the device event that ends the gap; -1 when none follows."""
    launch: Rows
    """Row of its launching call, or -1."""
    call_start: Times
    call_end: Times
    """The launching call; both equal ``start`` where there is none."""
    pending: Times
    """When the first call returned whose work has not begun by the end of the gap: the next work's
    own or another's. The device could have begun it; ``NEVER`` where no call is known."""

    @property
    def span(self) -> Range:
        """From the instant before the first gap to the end of the last one, of at least one gap."""
        return Range(start=int(self.start[0]) - 1, end=int(self.end[-1]))


def idle_gaps(
    trace: Trace,
    device: int,
    range: Range,  # noqa: A002
    launches: Launches,
    *,
    block: int = BLOCK,
) -> Iterator[IdleGaps]:
    """Every gap that touches the range, with its next work; so many at a time, at least one block.

    Of several events that end a gap together, the one launched first is the next work.

    Args:
        trace: The event table.
        device: Index of the device.
        range: A stretch on the device's clock.
        launches: The join of device work to its launching calls.
        block: Gaps at a time, so that memory stays bounded.
    """
    events = trace.events
    rows = work_rows(trace, device)
    rows = rows[events.dur[rows] > 0]
    busy = union(events.ts[rows], events.ts[rows] + events.dur[rows])
    lo = min(range.start, int(busy.start[0])) if len(rows) else range.start
    hi = max(range.end, int(busy.end[-1])) if len(rows) else range.end
    start, end = gaps(busy, lo, hi)
    del busy
    touching = (start < range.end) & (end > range.start)
    start, end = start[touching], end[touching]
    work = _ending(trace, rows, end, launches)
    pending = _pending(trace, rows, end, launches)
    del rows, touching
    offset = launches.clock_offset.get(device, 0)
    for first in np.arange(0, max(len(start), 1), block):
        some = slice(first, first + block)
        yield _with_calls(
            trace, launches, start[some] + offset, end[some] + offset, work[some], pending[some]
        )


def _with_calls(  # noqa: PLR0917
    trace: Trace, launches: Launches, start: Times, end: Times, work: Rows, pending: Times
) -> IdleGaps:
    """Gaps with the calls that launched their next work."""
    events = trace.events
    launch, call_start, call_end = np.full_like(work, -1), start.copy(), start.copy()
    followed = np.flatnonzero(work >= 0)
    launch[followed] = launches.launch[work[followed]]
    known = np.flatnonzero(launch >= 0)
    call = launch[known]
    call_start[known] = events.ts[call]
    call_end[known] = events.ts[call] + events.dur[call]
    return IdleGaps(
        start=start,
        end=end,
        next_work=work,
        launch=launch,
        call_start=call_start,
        call_end=call_end,
        pending=pending,
    )


def _pending(trace: Trace, rows: NDArray[np.intp], end: Times, launches: Launches) -> Times:
    """For each gap, when the first call returned whose work begins at its end or later.

    Of all work that waits, the one launched first waits for nothing that is still to come: what it
    depends on was launched before it, and has ended, for the device is idle.
    """
    events = trace.events
    rows = rows[launches.launch[rows] >= 0]
    call = launches.launch[rows]
    returned = np.append(events.ts[call] + events.dur[call], NEVER)
    first = np.minimum.accumulate(returned[::-1])[::-1]
    return np.asarray(first[np.searchsorted(events.ts[rows], end, "left")], np.int64)


def _ending(trace: Trace, rows: NDArray[np.intp], end: Times, launches: Launches) -> Rows:
    """For each gap, the row of the device event that starts at its end, launched first."""
    events = trace.events
    launch = launches.launch[rows]
    called = np.where(launch >= 0, events.ts[np.maximum(launch, 0)], np.iinfo(np.int64).max)
    order = np.lexsort((called, events.ts[rows]))
    rows = rows[order]
    place = np.searchsorted(events.ts[rows], end, "left")
    found = np.full(len(end), -1, np.int32)
    inside = place < len(rows)
    meets = inside.copy()
    meets[inside] = events.ts[rows[place[inside]]] == end[inside]
    found[meets] = rows[place[meets]]
    return found
