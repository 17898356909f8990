"""Memory that the allocator holds and cannot use: free blocks in segments that something holds.

A segment goes back to the driver, or serves a larger request, only when all of it is free. What is
free beside a live block serves requests of its size or smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis.snapshots.owners import asker

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.snapshots.snapshot import Snapshot

PIN_COLUMNS = ("line", "operator", "bytes", "blocks", "pinned_bytes")


@dataclass(frozen=True, kw_only=True, eq=False)
class Fragmentation:
    """How the memory held of the driver is split, when the snapshot was taken."""

    device: int
    reserved_bytes: int
    live_bytes: int
    free_bytes: int
    """In whole segments and beside live blocks."""
    largest_free_bytes: int
    """The largest request that can be served without the driver."""
    pinned_bytes: int
    """Free beside live blocks: neither returned nor joined."""
    rounding_bytes: int
    """Live blocks beyond what was asked for."""
    pins: pd.DataFrame
    """Who holds the blocks that pin free memory, most pinned first; a segment's free bytes go to
    its live blocks in equal parts."""

    @property
    def share(self) -> float:
        """Pinned bytes of what is reserved."""
        return self.pinned_bytes / self.reserved_bytes if self.reserved_bytes else 0.0


def fragmentation(snapshot: Snapshot, device: int) -> Fragmentation:
    """The state of one device's segments at the end of the snapshot."""
    import pandas as pd

    mine = [each for each in snapshot.segments if each.device == device]
    reserved = sum(each.bytes for each in mine)
    live = pinned = rounding = largest = 0
    rows: list[tuple[str, str, int, int, float]] = []
    for segment in mine:
        held = [block for block in segment.blocks if block.live]
        free = [block.bytes for block in segment.blocks if not block.live]
        live += sum(block.bytes for block in held)
        rounding += sum(max(block.bytes - block.requested, 0) for block in held)
        largest = max(largest, *free, 0)
        if held and free:
            pinned += sum(free)
            for block in held:
                who = asker(snapshot.stacks[block.stack]) if block.stack >= 0 else None
                line, operator = (who.line, who.operator) if who else ("", "")
                rows.append((line, operator, block.bytes, 1, sum(free) / len(held)))
    pins = pd.DataFrame(rows, columns=list(PIN_COLUMNS))
    pins = pins.groupby(["line", "operator"], sort=False).sum().reset_index()
    pins["pinned_bytes"] = pins["pinned_bytes"].round().astype("int64")
    return Fragmentation(
        device=device,
        reserved_bytes=reserved,
        live_bytes=live,
        free_bytes=max(reserved - live, 0),
        largest_free_bytes=largest,
        pinned_bytes=pinned,
        rounding_bytes=rounding,
        pins=pins.sort_values("pinned_bytes", ascending=False, ignore_index=True),
    )
