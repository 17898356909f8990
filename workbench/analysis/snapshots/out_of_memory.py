"""What happened when memory ran out: what was asked for, what was left, who held the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.memory.owners import CATEGORIES, Owners
from workbench.analysis.memory.remedies import Remedy, remedies
from workbench.analysis.snapshots.owners import asker

if TYPE_CHECKING:
    from workbench.analysis.memory.recorded import Recorded
    from workbench.analysis.snapshots.snapshot import OutOfMemory, Snapshot

FRAGMENTED = 0.30
"""Share of what is reserved that nobody uses, from which a failure is one of fragmentation."""


@dataclass(frozen=True, kw_only=True)
class PostMortem:
    """One failed request and the state that it met."""

    device: int
    at_ns: int
    requested_bytes: int
    device_free_bytes: int | None
    live_bytes: int
    reserved_bytes: int
    line: str
    """The user's line that asked; empty where no stack was kept."""
    by_category: Mapping[str, int]
    """Who held the live bytes."""
    largest: tuple[tuple[str, str, int], ...]
    """Category, line and bytes of the largest holders."""
    fragmented: bool
    """Whether what was reserved and unused would have been enough, and was much."""
    remedies: tuple[Remedy, ...]

    @property
    def unused_bytes(self) -> int:
        """Reserved and live nowhere: in pieces too small for the request."""
        return max(self.reserved_bytes - self.live_bytes, 0)


def post_mortems(
    snapshot: Snapshot,
    recorded: Recorded,
    owners: Owners,
    effective: Mapping[str, object] | None = None,
) -> tuple[PostMortem, ...]:
    """One for each out-of-memory event of a snapshot."""
    return tuple(
        _post_mortem(snapshot, recorded, owners, each, effective) for each in snapshot.failures
    )


def _post_mortem(
    snapshot: Snapshot,
    recorded: Recorded,
    owners: Owners,
    failure: OutOfMemory,
    effective: Mapping[str, object] | None,
) -> PostMortem:
    device = [each.number for each in recorded.devices].index(failure.device)
    at = np.array([snapshot.ts[failure.at]])
    held = recorded.allocations.live_at(device, int(at[0]))
    live = int(recorded.allocations.bytes[held].sum())
    reserved = max(int(recorded.reserved[device].at(at)[0]), live)
    size, category = recorded.allocations.bytes[held], owners.category[held]
    by_category = {name: int(size[category == code].sum()) for code, name in enumerate(CATEGORIES)}
    unused = reserved - live
    fragmented = unused >= failure.bytes and unused > FRAGMENTED * reserved
    sums: dict[tuple[str, str], int] = {}
    for code, line, count in zip(
        category.tolist(), owners.line[held].tolist(), size.tolist(), strict=True
    ):
        key = CATEGORIES[code], owners.texts[line]
        sums[key] = sums.get(key, 0) + count
    largest = sorted(sums.items(), key=lambda each: -each[1])[:5]
    who = asker(snapshot.stacks[failure.stack]) if failure.stack >= 0 else None
    return PostMortem(
        device=failure.device,
        at_ns=int(at[0]),
        requested_bytes=failure.bytes,
        device_free_bytes=failure.device_free,
        live_bytes=live,
        reserved_bytes=reserved,
        line="" if who is None else who.line,
        by_category=by_category,
        largest=tuple((*names, count) for names, count in largest),
        fragmented=fragmented,
        remedies=remedies(
            by_category, effective=effective, fragmented_bytes=unused if fragmented else 0
        ),
    )
