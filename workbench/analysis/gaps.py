"""The idle gaps of a device, each with the work that ends it and the call that launched that."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import work_rows
from workbench.analysis.intervals import gaps, union
from workbench.analysis.launches import Launches
from workbench.analysis.ranges import Range
from workbench.trace.table import Trace

Rows = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True, eq=False)
class IdleGaps:
    """Maximal stretches in which no stream of a device works, on the host's clock.

    They reach beyond the range that is asked about, so that a gap cut by it keeps its true start.
    """

    start: Rows
    end: Rows
    next_work: Rows
    """Row of the device event that ends the gap; -1 when none follows."""
    launch: Rows
    """Row of its launching call, or -1."""
    call_start: Rows
    call_end: Rows
    """The launching call; both equal ``start`` where there is none."""
    pending: Rows
    """When the first call returned whose work has not begun by the end of the gap: the next work's
    own or another's. The device could have begun it; ``NEVER`` where no call is known."""

    def in_blocks(self, size: int) -> "Iterator[IdleGaps]":
        """The same gaps, so many at a time; at least one block."""
        for first in range(0, max(len(self.start), 1), size):
            yield IdleGaps(
                **{c.name: getattr(self, c.name)[first : first + size] for c in fields(self)}
            )


def idle_gaps(trace: Trace, device: int, range: Range, launches: Launches) -> IdleGaps:  # noqa: A002
    """Every gap that touches the range, with its next work.

    Of several events that end a gap together, the one launched first is the next work.

    Args:
        trace: The event table.
        device: Index of the device.
        range: A stretch on the device's clock.
        launches: The join of device work to its launching calls.
    """
    events = trace.events
    rows = work_rows(trace, device)
    rows = rows[events.dur[rows] > 0]
    busy = union(events.ts[rows], events.end[rows])
    lo = min(range.start, int(busy.start[0])) if len(rows) else range.start
    hi = max(range.end, int(busy.end[-1])) if len(rows) else range.end
    start, end = gaps(busy, lo, hi)
    touching = (start < range.end) & (end > range.start)
    start, end = start[touching], end[touching]
    work = _ending(trace, rows, end, launches)
    pending = _pending(trace, rows, end, launches)
    launch = np.where(work >= 0, launches.launch[np.maximum(work, 0)], -1) if len(events) else work
    offset = launches.clock_offset.get(device, 0)
    start, end = start + offset, end + offset
    known = launch >= 0
    call = np.maximum(launch, 0)
    return IdleGaps(
        start=start,
        end=end,
        next_work=work,
        launch=launch,
        call_start=np.where(known, events.ts[call], start) if len(events) else start,
        call_end=np.where(known, events.end[call], start) if len(events) else start,
        pending=pending,
    )


def _pending(trace: Trace, rows: NDArray[np.intp], end: Rows, launches: Launches) -> Rows:
    """For each gap, when the first call returned whose work begins at its end or later.

    Of all work that waits, the one launched first waits for nothing that is still to come: what it
    depends on was launched before it, and has ended, for the device is idle.
    """
    events = trace.events
    rows = rows[launches.launch[rows] >= 0]
    returned = np.append(events.end[launches.launch[rows]], NEVER)
    first = np.minimum.accumulate(returned[::-1])[::-1]
    return np.asarray(first[np.searchsorted(events.ts[rows], end, "left")], np.int64)


def _ending(trace: Trace, rows: NDArray[np.intp], end: Rows, launches: Launches) -> Rows:
    """For each gap, the row of the device event that starts at its end, launched first."""
    events = trace.events
    launch = launches.launch[rows]
    called = np.where(launch >= 0, events.ts[np.maximum(launch, 0)], np.iinfo(np.int64).max)
    order = np.lexsort((called, events.ts[rows]))
    rows = rows[order]
    place = np.searchsorted(events.ts[rows], end, "left")
    found = np.full(len(end), -1, np.int64)
    inside = place < len(rows)
    meets = inside.copy()
    meets[inside] = events.ts[rows[place[inside]]] == end[inside]
    found[meets] = rows[place[meets]]
    return found
