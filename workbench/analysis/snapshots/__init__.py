"""Memory snapshots of torch's caching allocator: read safely, and turned into answers."""

from workbench.analysis.snapshots.read import SNAPSHOT_LIMIT, is_pickle, read_snapshot
from workbench.analysis.snapshots.snapshot import Block, Frame, OutOfMemory, Segment, Snapshot

__all__ = [
    "SNAPSHOT_LIMIT",
    "Block",
    "Frame",
    "OutOfMemory",
    "Segment",
    "Snapshot",
    "is_pickle",
    "read_snapshot",
]
