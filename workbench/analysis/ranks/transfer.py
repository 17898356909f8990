"""The transfer of each collective, as all ranks together tell it; the rest of it is waiting.

The shortest of all ranks is the one that waited for nobody: its duration is the transfer. Where
ranks move different amounts (uneven all-to-all), a rank waits until the last one has arrived, on
the common clock. Send and receive have no common part and are not divided.
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
    return found


def _of_one(parts: Sequence[RankPart], members: Members, clock: Clock) -> dict[int, int]:
    start, end, splits = {}, {}, set()
    for position, call in members.items():
        collectives = parts[position].collectives
        assert collectives is not None
        start[position] = int(collectives.start[call] + collectives.clock[call])
        end[position] = int(collectives.end[call] + collectives.clock[call])
        splits.add(collectives.calls[call].split)
    split = next(each for each in _STRICTEST if each in splits)
    took = {position: end[position] - start[position] for position in members}
    if split == "minimum":
        return dict.fromkeys(members, min(took.values()))
    if split == "none" or not clock.aligned:
        return {}
    common = {position: start[position] + (clock.add_ns[position] or 0) for position in members}
    last = max(common.values())
    return {p: took[p] - min(max(last - common[p], 0), took[p]) for p in members}
