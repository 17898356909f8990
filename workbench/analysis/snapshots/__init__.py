"""Memory snapshots of torch's caching allocator: read safely, and turned into answers."""

from workbench.analysis.snapshots.read import is_pickle, read_snapshot
from workbench.analysis.snapshots.snapshot import Block, Frame, OutOfMemory, Segment, Snapshot
from workbench.store.memory import SNAPSHOT_LIMIT

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
