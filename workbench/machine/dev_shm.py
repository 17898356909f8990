"""Room in /dev/shm, through which data-loader workers hand over their batches."""

import os
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - asked for its size, never written to


@dataclass(frozen=True, kw_only=True)
class SharedMemory:
    """Size of the file system for shared memory, in bytes."""

    size: int
    free: int


def shared_memory(path: Path = SHARED_MEMORY) -> SharedMemory | None:
    """Size and free room of /dev/shm; ``None`` where the system has none (macOS, Windows)."""
    if not hasattr(os, "statvfs"):
        return None
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return SharedMemory(size=found.f_frsize * found.f_blocks, free=found.f_frsize * found.f_bavail)
