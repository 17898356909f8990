"""From a file of ``torch.cuda.memory._dump_snapshot`` to a snapshot, whatever release wrote it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from workbench.analysis.snapshots.snapshot import (
    Action,
    Annotation,
    Block,
    Frame,
    OutOfMemory,
    Segment,
    Snapshot,
)
from workbench.analysis.snapshots.unpickle import load_plain
from workbench.errors import TraceError
from workbench.store.memory import SNAPSHOT_LIMIT
from workbench.trace.source import open_source

MOST_ADDRESS = 2**63
MOST_BYTES = 2**44
"""Of one block or segment: 16 TB, so that sums stay numbers that numpy can hold."""
MOST_TIME_US = 2**52
"""Microseconds since 1970: a century and more ahead, and still a number in nanoseconds."""
MOST_DEVICES = 1024
MOST_TEXT = 4096
"""Characters of a name or path that are kept; the longest C++ names have some two thousand."""
MOST_FRAMES = 2000
"""Lines of a stack: Python stops at a thousand calls inside each other."""
_PIECE = 1 << 20
_ACTIONS = {
    "alloc": Action.ALLOC,
    "free_requested": Action.FREE_REQUESTED,
    "free_completed": Action.FREE_COMPLETED,
    "free": Action.FREE_COMPLETED,
    "segment_alloc": Action.SEGMENT_ALLOC,
    "segment_map": Action.SEGMENT_ALLOC,
    "segment_free": Action.SEGMENT_FREE,
    "segment_unmap": Action.SEGMENT_FREE,
    "oom": Action.OUT_OF_MEMORY,
}


def is_pickle(head: bytes) -> bool:
    """Whether a file's first bytes are those of a pickle of protocol 2 to 5."""
    return head[:1] == b"\x80" and len(head) > 1 and head[1] in (2, 3, 4, 5)


def read_snapshot(
    source: str | Path | bytes | BinaryIO, *, size_limit: int = SNAPSHOT_LIMIT
) -> Snapshot:
    """Read a memory snapshot, plain or compressed; nothing in it is ever run.

    Args:
        source: A path, the bytes themselves, or a binary file.
        size_limit: Most bytes of the uncompressed pickle to read.

    Raises:
        TraceError: It is no snapshot, too large, damaged, or a pickle that asks for more than
            plain values.
    """
    opened, head = open_source(source, 2 * size_limit + _PIECE)
    with opened:
        if not is_pickle(head):
            raise TraceError(f"{opened.name} is no pickle, so no memory snapshot.")
        data = bytearray()
        piece = memoryview(bytearray(_PIECE))
        while count := opened.read_into(piece):
            data += piece[:count]
            if len(data) > size_limit:
                raise TraceError(
                    f"{opened.name}: stopped after {size_limit:,} bytes, the limit against absurd "
                    "sizes. If the snapshot really is that large, pass a larger size_limit to "
                    "workbench.analysis.snapshots.read_snapshot, or record fewer entries "
                    "(max_entries)."
                )
        return _Reader(opened.name, len(data)).read(load_plain(bytes(data), opened.name))


class _Reader:
    """Turns plain containers into the record; what is not as expected is refused by its place."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.left = size
        """Shared parts may be visited so often in all: a small file cannot ask for endless work."""
        self.stacks: dict[tuple[Frame, ...], int] = {}
        self.known: dict[int, int] = {}
        self.lines: dict[int, Frame] = {}

    def read(self, found: Any) -> Snapshot:
        if isinstance(found, list):  # torch.cuda.memory_snapshot() before 2.1 had segments only
            found = {"segments": found, "device_traces": []}
        if not isinstance(found, dict) or not isinstance(found.get("segments"), list):
            raise TraceError(
                f"{self.name} is a pickle of plain values, but no memory snapshot: one comes from "
                "torch.cuda.memory._dump_snapshot('snapshot.pickle')."
            )
        segments = tuple(self.segment(each, i) for i, each in enumerate(found["segments"]))
        columns = self.actions(self.sequence(found.get("device_traces", []), "device_traces"))
        annotations = self.sequence(found.get("external_annotations") or [], "annotations")
        base = columns.pop("base_ns")
        settings = found.get("allocator_settings")
        return Snapshot(
            source=self.name,
            stacks=tuple(self.stacks),
            segments=segments,
            annotations=tuple(self.annotation(each, base) for each in annotations),
            settings=self.settings(settings),
            base_ns=base,
            **columns,
        )

    def refuse(self, where: str, what: str) -> NoReturn:
        raise TraceError(
            f"{self.name} is a memory snapshot of an unknown kind: {where} {what}. If a release of "
            "torch wrote it, please report it with the release's number."
        )

    def visit(self, where: str) -> None:
        self.left -= 1
        if self.left < 0:
            self.refuse(where, "refers to the same parts more often than a snapshot does")

    def sequence(self, value: Any, where: str) -> Sequence[Any]:
        if not isinstance(value, (list, tuple)):
            self.refuse(where, "is no list")
        return value

    def mapping(self, value: Any, where: str) -> Mapping[str, Any]:
        self.visit(where)
        if not isinstance(value, dict):
            self.refuse(where, "is no dictionary")
        return value

    def number(
        self, value: Any, where: str, default: int | None = None, *, below: int = MOST_ADDRESS
    ) -> int:
        if value is None and default is not None:
            return default
        if type(value) is not int or not 0 <= value < below:
            said = f" {value}" if isinstance(value, int | float) else ""
            self.refuse(where, f"is {type(value).__name__}{said}, no sensible number")
        return value

    def text(self, value: Any, default: str = "") -> str:
        """Text as it is; of anything else nothing, since shared containers have endless texts."""
        return value[:MOST_TEXT] if type(value) is str else default

    def settings(self, value: Any) -> dict[str, str | float]:
        """The plain ones of the allocator's settings."""
        if not isinstance(value, dict):
            return {}
        return {
            key: self.text(each, "") if isinstance(each, str) else each
            for key, each in value.items()
            if type(key) is str and isinstance(each, str | int | float)
        }

    def segment(self, value: Any, number: int) -> Segment:
        where = f"segment {number}"
        one = self.mapping(value, where)
        address = self.number(one.get("address"), where)
        blocks, at = [], address
        for each in self.sequence(one.get("blocks", []), where):
            block = self.block(each, at, f"a block of {where}")
            blocks.append(block)
            at = block.address + block.bytes
        return Segment(
            device=self.number(one.get("device"), where, 0, below=MOST_DEVICES),
            address=address,
            bytes=self.number(one.get("total_size"), where, below=MOST_BYTES),
            stream=self.number(one.get("stream"), where, 0),
            kind=self.text(one.get("segment_type"), "unknown"),
            expandable=bool(one.get("is_expandable", False)),
            blocks=tuple(blocks),
        )

    def block(self, value: Any, at: int, where: str) -> Block:
        """A block; torch before 2.1 left out its address and kept stacks in a history."""
        one = self.mapping(value, where)
        size = self.number(one.get("size"), where, below=MOST_BYTES)
        frames, requested = one.get("frames"), one.get("requested_size")
        history = one.get("history")
        if isinstance(history, list) and history:
            latest = self.mapping(history[0], where)
            frames = latest.get("frames") if frames is None else frames
            requested = latest.get("real_size") if requested is None else requested
        return Block(
            address=self.number(one.get("address"), where, at),
            bytes=size,
            requested=self.number(requested, where, size, below=MOST_BYTES),
            state=self.text(one.get("state")),
            stack=self.stack(frames),
        )

    def stack(self, frames: Any) -> int:
        """Stacks are shared in the file, so that each is read once."""
        if not isinstance(frames, list) or not frames:
            return -1
        known = self.known.get(id(frames))
        if known is None:
            if len(frames) > MOST_FRAMES:
                self.refuse("a stack", f"has {len(frames):,} lines")
            made = tuple(self.frame(each) for each in frames)
            known = self.known[id(frames)] = self.stacks.setdefault(made, len(self.stacks))
        return known

    def frame(self, value: Any) -> Frame:
        """Lines are shared, too."""
        self.visit("a frame")
        known = self.lines.get(id(value))
        if known is None:
            known = self.lines[id(value)] = self.new_frame(value)
        return known

    def new_frame(self, value: Any) -> Frame:
        one = self.mapping(value, "a frame")
        line = one.get("line", 0)
        return Frame(
            self.text(one.get("name")),
            self.text(one.get("filename")),
            line if type(line) is int and 0 <= line < 2**31 else 0,
        )

    def annotation(self, value: Any, base: int | None) -> Annotation:
        one = self.mapping(value, "an annotation")
        at = self.number(one.get("time_us"), "an annotation", 0, below=MOST_TIME_US) * 1000
        at -= base or 0
        return Annotation(self.text(one.get("name")), one.get("stage") == "START", at)

    def actions(self, traces: Sequence[Any]) -> dict[str, Any]:
        """The columns; devices one after the other, each in its own order."""
        rows: list[tuple[int, int, int, int, int, int]] = []
        failures, timed, base = [], True, None
        if len(traces) > MOST_DEVICES:
            self.refuse("device_traces", f"tells of {len(traces):,} devices")
        for device, trace in enumerate(traces):
            for each in self.sequence(trace, f"the trace of device {device}"):
                where = f"action {len(rows)}"
                one = self.mapping(each, where)
                action = _ACTIONS.get(self.text(one.get("action")), Action.OTHER)
                size = self.number(one.get("size"), where, 0, below=MOST_BYTES)
                stack = self.stack(one.get("frames"))
                when = one.get("time_us")
                timed = timed and when is not None
                at = self.number(when, where, 0, below=MOST_TIME_US) * 1000
                base = at if base is None else min(base, at)
                free = one.get("device_free")
                if action is Action.OUT_OF_MEMORY:
                    failures.append(
                        OutOfMemory(
                            at=len(rows),
                            device=device,
                            bytes=size,
                            device_free=None if free is None else self.number(free, where),
                            stack=stack,
                        )
                    )
                address = self.number(one.get("addr"), where, 0)
                rows.append((at, device, action, address, size, stack))
        table = np.array(rows, np.int64).reshape(-1, 6)
        ts = table[:, 0] - (base or 0) if timed else np.arange(len(table))
        return {
            "ts": ts,
            "device": table[:, 1].astype(np.int16),
            "action": table[:, 2].astype(np.uint8),
            "address": table[:, 3],
            "bytes": table[:, 4],
            "stack": table[:, 5].astype(np.int32),
            "failures": tuple(failures),
            "has_times": timed and len(table) > 0,
            "base_ns": base if timed and len(table) else None,
        }
