"""Memory snapshots in a Run's folder: a file beside each trace whose device has a history."""

from pathlib import Path

SNAPSHOT_LIMIT = 256 * 2**20
"""Bytes of a snapshot that are read by default; read, they take some fifteen times as much."""
_TRACE, _SNAPSHOT = ".trace.json.gz", ".memory.pickle"


def snapshot_beside(trace: Path) -> Path:
    """Where the memory snapshot of a rank lies, by its trace: ``rank0.memory.pickle``."""
    return trace.with_name(trace.name.removesuffix(_TRACE) + _SNAPSHOT)
