"""Builds memory snapshots by hand, in the layout of ``torch.cuda.memory._dump_snapshot``."""

import pickle
from pathlib import Path
from typing import Any

MB = 2**20
Stack = list[dict[str, Any]]


def frames(*lines: tuple[str, int, str]) -> Stack:
    """A stack, innermost first: file, line, function."""
    return [{"filename": file, "line": line, "name": name} for file, line, name in lines]


class Made:
    """What the allocator of one device did, and the segments that are left."""

    def __init__(self) -> None:
        self.trace: list[dict[str, Any]] = []
        self.segments: list[dict[str, Any]] = []

    def act(
        self, action: str, address: int, size: int, ts: int, stack: Stack | None = None, **more: Any
    ) -> None:
        """One action at ``ts`` microseconds."""
        made: dict[str, Any] = {"action": action, "addr": address, "size": size, "stream": 0}
        made |= {"time_us": 1_700_000_000_000_000 + ts, "frames": stack or []}
        self.trace.append({**made, **more})

    def alloc(self, address: int, size: int, ts: int, stack: Stack | None = None) -> None:
        self.act("alloc", address, size, ts, stack)

    def free(self, address: int, size: int, ts: int, stack: Stack | None = None) -> None:
        self.act("free_requested", address, size, ts, stack)
        self.act("free_completed", address, size, ts, stack)

    def segment(self, address: int, size: int, *blocks: tuple[int, bool, Stack | None]) -> None:
        """Memory held of the driver now: sizes of its blocks, whether they are live, by whom."""
        made, at = [], address
        for length, live, stack in blocks:
            state = "active_allocated" if live else "inactive"
            one = {"address": at, "size": length, "requested_size": length, "state": state}
            made.append({**one, "frames": stack or []})
            at += length
        held: dict[str, Any] = {"device": 0, "address": address, "total_size": size, "stream": 0}
        held |= {"segment_type": "large", "is_expandable": False, "blocks": made, "frames": []}
        self.segments.append(held)

    def document(self) -> dict[str, Any]:
        return {
            "segments": self.segments,
            "device_traces": [self.trace],
            "allocator_settings": {"expandable_segments": False},
            "external_annotations": [],
        }

    def data(self) -> bytes:
        return pickle.dumps(self.document(), protocol=4)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.data())
        return path
