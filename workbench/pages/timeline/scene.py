"""What the timeline shows: tracks of events and counters on one clock, before they are packed."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.nesting import depths, nest
from workbench.pages.timeline.labels import Labels

TrackKind = Literal[
    "steps", "loop", "thread", "idle", "stream", "ranges", "communication", "loader"
]

ROUNDING_NS, LARGEST_ROUNDING_NS = 2, 1_000
"""Overlaps that come from rounding: of two ends in ns, or, below a hundredth of an event, in µs."""

Times = NDArray[np.int64]
Codes = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Track:
    """Events of one line of work in rows by depth: within a row they never overlap.

    Sorted by depth, then by start. Times are nanoseconds on the clock of the scene.
    """

    kind: TrackKind
    name: str
    group: str
    rank: int
    """Place of its rank among those shown."""
    start: Times
    dur: Times
    label: Codes
    depth: Codes
    row: Codes
    """Row in the rank's event table, or -1."""
    link: Codes
    """Row of what an event belongs to: a kernel to its launch, a gap to the work that ended it."""
    of: Codes
    """Row of the host record that explains a gap."""
    device: int = -1
    note: str = ""
    shape: Codes | None = None
    """Codes of input shapes, -1 for none; ``None``: there are none."""
    count: Codes | None = None
    """How many events each one stands for; ``None``: each for itself."""
    idle: Times | None = None
    """How much of a merged event is no work."""

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, kw_only=True, eq=False)
class Counter:
    """A value over time; it holds until the next instant."""

    name: str
    group: str
    rank: int
    unit: Literal["bytes", "percent", "number"]
    at: Times
    value: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """Everything that one timeline shows."""

    title: str
    tracks: tuple[Track, ...]
    counters: tuple[Counter, ...]
    labels: Labels
    start: int
    end: int
    ranks: tuple[str, ...]
    """What each rank is called; one empty name where there is one alone."""
    moves: tuple[int, ...] = (0,)
    """What was added to each rank's times to bring them to the clock of the first."""
    notes: tuple[str, ...] = ()
    """What a reader must know: clocks that were moved, causes that cannot be trusted."""

    def __len__(self) -> int:
        return sum(len(track) for track in self.tracks)


def track(  # noqa: PLR0917
    kind: TrackKind,
    name: str,
    group: str,
    rank: int,
    start: Times,
    dur: Times,
    label: Codes,
    *,
    row: NDArray[np.integer] | None = None,
    link: NDArray[np.integer] | None = None,
    of: NDArray[np.integer] | None = None,
    shape: NDArray[np.int32] | None = None,
    device: int = -1,
    note: str = "",
) -> Track:
    """A track of events in any order; what begins inside another gets a row below it."""
    order = np.lexsort((-dur, start))
    start, dur = start[order].astype(np.int64), dur[order].astype(np.int64)
    dur = _without_rounding(start, dur)
    nested = nest(np.arange(len(start)), np.zeros(len(start), np.int32), start, start + dur)
    depth = depths(nested.parent).astype(np.int32)
    by_row = np.argsort(depth, kind="stable")
    order = order[by_row]

    def chosen(values: NDArray[np.integer] | None) -> Codes:
        if values is None:
            return np.full(len(start), -1, np.int32)
        return values[order].astype(np.int32)

    return Track(
        kind=kind,
        name=name,
        group=group,
        rank=rank,
        start=start[by_row],
        dur=dur[by_row],
        label=label[order].astype(np.int32),
        depth=depth[by_row],
        row=chosen(row),
        link=chosen(link),
        of=chosen(of),
        shape=None if shape is None else chosen(shape),
        device=device,
        note=note,
    )


def _without_rounding(start: Times, dur: Times) -> Times:
    """Lengths without what rounding adds: the next one begins a breath before the end.

    Otherwise every second kernel of a busy stream would be drawn in a row of its own.
    """
    if len(start) < 2:
        return dur
    end = start + dur
    over = end[:-1] - start[1:]
    most = np.minimum(np.maximum(ROUNDING_NS, dur[:-1] // 100), LARGEST_ROUNDING_NS)
    trimmed = (over > 0) & (over <= most) & (end[1:] > end[:-1]) & (over < dur[:-1])
    dur = dur.copy()
    dur[:-1][trimmed] -= over[trimmed]
    return dur
