"""The transfer of each collective, as all ranks together tell it; the rest of it is waiting.

The shortest of all ranks is the one that waited for nobody: its duration is the transfer. Where
ranks move different amounts (uneven all-to-all), a rank waits until the last one has arrived, on
the common clock. So it is for a send and its receive, where both ends were recorded; others have no
common part and are not divided.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.collective_names import Split
from workbench.analysis.communication import UNKNOWN
from workbench.analysis.ranks.clock import Clock
from workbench.analysis.ranks.matching import Matched, Members
from workbench.analysis.ranks.part import RankPart

_STRICTEST: tuple[Split, ...] = ("arrival", "minimum", "none")


def transfers(
    parts: Sequence[RankPart], matched: Matched, clock: Clock
) -> tuple[NDArray[np.int64], ...]:
    """Per rank and call the transfer in nanoseconds, ``UNKNOWN`` where it cannot be told."""
    lengths = [0 if part.collectives is None else len(part.collectives) for part in parts]
    found = tuple(np.full(length, UNKNOWN, np.int64) for length in lengths)
    for members in matched.members:
        for position, ns in _of_one(parts, members, clock).items():
            found[position][members[position]] = ns
    for pair in matched.pairs if clock.aligned else ():
        for position, ns in _of_message(parts, pair, clock).items():
            found[position][pair[position]] = ns
    return found


def _of_message(parts: Sequence[RankPart], pair: Members, clock: Clock) -> dict[int, int]:
    """As by arrival; what a send takes when the receiver has its data moves nothing any more."""
    start, end = _times(parts, pair)
    found = _by_arrival(start, end, clock)
    received = [end[p] + (clock.add_ns[p] or 0) for p in pair if _receives(parts[p], pair[p])]
    for position in pair:
        if received and not _receives(parts[position], pair[position]):
            after = end[position] + (clock.add_ns[position] or 0) - received[0]
            found[position] = max(found[position] - max(after, 0), 0)
    return found


def _receives(part: RankPart, call: int) -> bool:
    return part.collectives is not None and part.collectives.calls[call].kind == "recv"


def _of_one(parts: Sequence[RankPart], members: Members, clock: Clock) -> dict[int, int]:
    start, end = _times(parts, members)
    splits = set()
    for position, call in members.items():
        collectives = parts[position].collectives
        assert collectives is not None
        splits.add(collectives.calls[call].split)
    split = next(each for each in _STRICTEST if each in splits)
    if split == "minimum":
        return dict.fromkeys(members, min(end[p] - start[p] for p in members))
    if split == "none" or not clock.aligned:
        return {}
    return _by_arrival(start, end, clock)


def _times(parts: Sequence[RankPart], members: Members) -> tuple[dict[int, int], dict[int, int]]:
    """Start and end of a call on each of its ranks, on the rank's own clock."""
    start, end = {}, {}
    for position, call in members.items():
        collectives = parts[position].collectives
        assert collectives is not None
        start[position] = int(collectives.start[call] + collectives.clock[call])
        end[position] = int(collectives.end[call] + collectives.clock[call])
    return start, end


def _by_arrival(start: dict[int, int], end: dict[int, int], clock: Clock) -> dict[int, int]:
    """What is left of each after the last one has arrived."""
    took = {position: end[position] - start[position] for position in start}
    common = {position: start[position] + (clock.add_ns[position] or 0) for position in start}
    last = max(common.values())
    return {p: took[p] - min(max(last - common[p], 0), took[p]) for p in start}
