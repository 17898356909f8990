"""How many launches wait in the queue of a device or of one of its streams, over time.

A launch waits from the start of its call until the first work that it brought begins. A graph
launch is one entry. What was launched before the recording is not known and not counted.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import work_rows
from workbench.analysis.launches import Launches
from workbench.analysis.ranges import Range
from workbench.trace.table import Trace

Times = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class QueueSummary:
    """A queue over a stretch of time in three numbers, without its course."""

    stream: int | None
    """``None``: all streams of the device."""
    mean: float
    most: int
    empty_share: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class QueueLength:
    """The queue of one stream, or of a whole device, as steps on the host's clock."""

    device: int
    stream: int | None
    """``None``: all streams of the device."""
    at: Times
    """When the length changes."""
    length: NDArray[np.int32]
    """From that instant on; 0 before the first."""

    def mean(self, span: Range) -> float:
        """Mean length over a stretch of time."""
        return float(self.means(np.array([span.start, span.end]))[0]) if span.length else 0.0

    def most(self, span: Range) -> int:
        """The longest queue in a stretch of time."""
        return int(self.maxima(np.array([span.start, span.end]))[0])

    def empty_share(self, span: Range) -> float | None:
        """Share of a stretch of time in which nothing waits."""
        if not span.length:
            return None
        waits = QueueLength(
            device=self.device,
            stream=self.stream,
            at=self.at,
            length=(self.length > 0).astype(np.int32),
        )
        return 1 - waits.mean(span)

    def summary(self, span: Range) -> QueueSummary:
        """A stretch of time in three numbers."""
        return QueueSummary(
            stream=self.stream,
            mean=self.mean(span),
            most=self.most(span),
            empty_share=self.empty_share(span),
        )

    def means(self, edges: Times) -> NDArray[np.float64]:
        """Mean length between each two neighbouring instants."""
        if not len(self.at):
            return np.zeros(len(edges) - 1)
        area = np.concatenate(([0], np.cumsum(self.length[:-1] * np.diff(self.at))))
        place = np.searchsorted(self.at, edges, "right") - 1
        known = np.maximum(place, 0)
        whole = area[known] + self.length[known] * (edges - self.at[known])
        whole = np.where(place >= 0, whole, 0)
        return np.asarray(np.diff(whole) / np.maximum(np.diff(edges), 1), np.float64)

    def maxima(self, edges: Times) -> Times:
        """The longest queue between each two neighbouring instants."""
        if not len(self.at):
            return np.zeros(len(edges) - 1, np.int64)
        place = np.searchsorted(self.at, edges[:-1], "right") - 1
        found = np.where(place >= 0, self.length[np.maximum(place, 0)], 0)
        index = np.searchsorted(edges, self.at, "right") - 1
        inside = (index >= 0) & (index < len(found))
        np.maximum.at(found, index[inside], self.length[inside])
        return np.asarray(found, np.int64)


def queue_lengths(trace: Trace, launches: Launches, device: int) -> tuple[QueueLength, ...]:
    """The queue of a device, then that of each of its streams; the busiest stream first.

    Empty where the clocks of host and device cannot be compared, or nothing was launched.
    """
    events = trace.events
    rows = work_rows(trace, device)
    rows = rows[launches.launch[rows] >= 0]
    if not len(rows) or not launches.clock_ok.get(device, True):
        return ()
    offset = launches.clock_offset.get(device, 0)
    streams, count = np.unique(events.stream[rows], return_counts=True)
    ordered: list[int] = streams[np.argsort(-count, kind="stable")].tolist()
    found: list[QueueLength] = []
    for stream in (None, *ordered):
        if found and len(ordered) == 1:
            found.append(replace(found[0], stream=stream))
            break
        mine = rows if stream is None else rows[events.stream[rows] == stream]
        call, first = np.unique(launches.launch[mine], return_index=True)
        at, length = _steps(events.ts[call], events.ts[mine[first]] + offset)
        found.append(QueueLength(device=device, stream=stream, at=at, length=length))
    return tuple(found)


def _steps(called: Times, begun: Times) -> tuple[Times, NDArray[np.int32]]:
    """The instants at which the number of calls not yet begun changes, and the number after."""
    at = np.concatenate((called, begun))
    change = np.repeat(np.array([1, -1], np.int8), [len(called), len(begun)])
    order = np.argsort(at, kind="stable")
    at, length = at[order], np.cumsum(change[order], dtype=np.int32)
    last = np.append(np.diff(at) > 0, True)
    return at[last], length[last]
