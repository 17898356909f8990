"""Worker processes, pinning and the loop's waits as lanes on one clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from workbench.analysis.stalls.batches import MISSING, Batches, batches_of
from workbench.analysis.stalls.parts import PARTS, Stalls, Times

if TYPE_CHECKING:
    import pandas as pd

    from workbench.store.loader import LoaderRecords


class Bar(NamedTuple):
    """A stretch of a lane."""

    start: int
    end: int
    part: str
    batch: int
    """Number of the batch, or -1."""


class Link(NamedTuple):
    """From where a batch was made to the wait that it ended."""

    made: int
    """When its fetch ended."""
    lane: str
    delivered: int


@dataclass(frozen=True, kw_only=True)
class Lanes:
    """Bars by lane, in the order in which lanes are drawn; instants on the host's clock."""

    start: int
    end: int
    lanes: dict[str, list[Bar]]
    waits: list[Bar]
    """The exposed wait; each bar in the part that took most of it."""
    links: list[Link]
    first: int
    last: int
    """Places of the first and the last shown wait among ``of`` waits for a batch."""
    of: int


def lanes(records: LoaderRecords, stalls: Stalls, *, most: int = 24) -> Lanes | None:
    """The lanes around the longest exposed wait; ``None`` where no batch was waited for.

    Args:
        records: What the loader's probes recorded.
        stalls: The split of the wait.
        most: Batches that are shown at most.
    """
    batches = batches_of(records.batches)
    pieces = stalls.pieces
    waited = np.unique(pieces.batch[pieces.batch >= 0])
    if not len(waited):
        return None
    waited = waited[np.argsort(batches.delivered[waited], kind="stable")]
    length = np.bincount(
        pieces.batch[pieces.batch >= 0],
        (pieces.end - pieces.start)[pieces.batch >= 0],
        len(batches),
    )[waited]
    first = _around(length, most)
    shown = waited[first : first + most]
    start = int(batches.wait_start[shown[0]])
    mine = np.isin(pieces.batch, shown)
    start = min(start, int(pieces.start[mine].min()))
    end = int(max(batches.delivered[shown].max(), pieces.end[mine].max()))
    return Lanes(
        start=start,
        end=end,
        lanes=_lanes(records, batches, start, end),
        waits=_waits(stalls, mine, batches, records),
        links=[
            Link(int(batches.fetch_end[row]), _name(batches, row), int(batches.delivered[row]))
            for row in shown
            if batches.fetch_end[row] != MISSING and batches.worker[row] != MISSING
        ],
        first=first,
        last=first + len(shown) - 1,
        of=len(waited),
    )


def _around(length: Times, most: int) -> int:
    """Where to begin so that so many waits hold as much waiting as any that lie together."""
    if len(length) <= most:
        return 0
    sums = np.convolve(length, np.ones(most), "valid")
    return int(sums.argmax())


def _name(batches: Batches, row: int) -> str:
    worker = int(batches.worker[row])
    return "the loop's thread" if worker == MISSING else f"worker {worker}"


def _lanes(records: LoaderRecords, batches: Batches, start: int, end: int) -> dict[str, list[Bar]]:
    """Every batch that was made in the stretch, by who made it; then the pinning thread."""
    frame = records.batches
    serialized = _ends(frame["serialize_start_ns"], frame["serialize_ns"], frame["send_ns"])
    found: dict[str, list[Bar]] = {}
    pinned: list[Bar] = []
    numbers = frame["batch"].astype("Int64").fillna(-1).to_numpy(np.int64)
    for row in np.argsort(batches.fetch_start, kind="stable"):
        number = int(numbers[row])
        made = batches.fetch_start[row] != MISSING
        bars = []
        if made:
            a, b, c = (
                int(side[row])
                for side in (batches.fetch_start, batches.collate_start, batches.fetch_end)
            )
            bars = [Bar(a, b, "decode", number), Bar(b, c, "collate", number)]
            if serialized[row][1]:
                bars.append(Bar(serialized[row][0], serialized[row][1], "transfer", number))
        kept = [bar for bar in bars if bar.end > start and bar.start < end and bar.end > bar.start]
        if kept:
            found.setdefault(_name(batches, int(row)), []).extend(kept)
        if batches.pin_start[row] != MISSING and batches.worker[row] != MISSING:
            pin = Bar(int(batches.pin_start[row]), int(batches.pinned[row]), "pin", number)
            if pin.end > start and pin.start < end:
                pinned.append(pin)
    ordered = {name: found[name] for name in sorted(found, key=_place)}
    return ordered | ({"pinning thread": pinned} if pinned else {})


def _ends(start: pd.Series[int], *lengths: pd.Series[int]) -> list[tuple[int, int]]:
    """Start and end of what has both, else zeros."""
    columns = [column.astype("Int64") for column in (start, *lengths)]
    known = np.logical_and.reduce([column.notna().to_numpy() for column in columns])
    values = [column.fillna(0).to_numpy(np.int64) for column in columns]
    ends = np.sum(values, axis=0)
    return [
        (int(a), int(b)) if seen else (0, 0)
        for a, b, seen in zip(values[0], ends, known, strict=True)
    ]


def _place(name: str) -> tuple[int, int]:
    number = name.rpartition(" ")[2]
    return (1, int(number)) if number.isdecimal() else (0, 0)


def _waits(
    stalls: Stalls,
    mine: np.ndarray[tuple[int], np.dtype[np.bool_]],
    batches: Batches,
    records: LoaderRecords,
) -> list[Bar]:
    """The exposed pieces, neighbours of the same part and batch as one."""
    numbers = records.batches["batch"].astype("Int64").fillna(-1).to_numpy(np.int64)
    pieces, found = stalls.pieces, list[Bar]()
    largest = pieces.amounts.argmax(axis=1)
    for at in np.flatnonzero(mine):
        bar = Bar(
            int(pieces.start[at]),
            int(pieces.end[at]),
            PARTS[largest[at]],
            int(numbers[pieces.batch[at]]),
        )
        last = found[-1] if found else None
        if last and (last.end, last.part, last.batch) == (bar.start, bar.part, bar.batch):
            found[-1] = bar._replace(start=last.start)
        else:
            found.append(bar)
    return found
