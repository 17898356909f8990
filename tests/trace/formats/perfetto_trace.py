"""Writes small Perfetto traces by hand, packet by packet, with the field numbers of its schema."""

import struct
from typing import Any

from tests.trace.formats.xspace import chunk, number, varint

NAMES = ["step", "aten::mm", "gemm", "cudaLaunchKernel"]
BASE = 1_700_000_000_000_000_000


def packet(*parts: bytes, at: int | None = None, sequence: int = 1, flags: int = 2) -> bytes:
    """A TracePacket of a trace."""
    head = b"" if at is None else number(8, at)
    return chunk(1, head + b"".join(parts) + number(10, sequence) + number(13, flags))


def process(uuid: int, pid: int, name: str) -> bytes:
    """The track of a process."""
    return packet(chunk(60, number(1, uuid) + chunk(3, number(1, pid) + chunk(6, name))))


def thread(uuid: int, parent: int, pid: int, tid: int, name: str = "") -> bytes:
    """The track of a thread."""
    inner = number(1, pid) + number(2, tid) + chunk(5, name)
    return packet(chunk(60, number(1, uuid) + number(5, parent) + chunk(4, inner)))


def interned(names: list[str], queues: dict[int, str] | None = None) -> bytes:
    """Names of events, and of the stages and queues of a GPU."""
    parts = [chunk(2, number(1, iid) + chunk(2, name)) for iid, name in enumerate(names, 1)]
    stages = {1: "Kernel", 2: "Memcpy", 3: "Memset", 4: "Annotation", **(queues or {})}
    parts += [chunk(24, number(1, iid) + chunk(2, name)) for iid, name in stages.items()]
    return packet(chunk(12, b"".join(parts)), flags=1)


def annotation(name: str | None, value: Any) -> bytes:
    """A debug annotation of any JSON value."""
    head = b"" if name is None else chunk(10, name)
    if isinstance(value, dict):
        return head + b"".join(chunk(11, annotation(k, v)) for k, v in value.items())
    if isinstance(value, list):
        return head + b"".join(chunk(12, annotation(None, v)) for v in value)
    if isinstance(value, float):
        return head + varint(5 << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return head + number(4, value)
    return head + chunk(6, str(value))


def begin(at: int, track: int, name: int, sequence: int = 1, **args: Any) -> bytes:
    """The begin of a slice, its name by number."""
    told = b"".join(chunk(4, annotation(k.replace("_", " "), v)) for k, v in args.items())
    body = number(9, 1) + number(11, track) + number(10, name) + told
    return packet(chunk(11, body), at=BASE + at, sequence=sequence)


def end(at: int, track: int, sequence: int = 1) -> bytes:
    """The end of what is open on a track."""
    body = number(9, 2) + number(11, track)
    return packet(chunk(11, body), at=BASE + at, sequence=sequence)


def work(at: int, dur: int, *, stage: int, queue: int, name: int = 0, **extra: Any) -> bytes:
    """Work on a GPU; ``extra`` are its extra data, grid and block apart."""
    body = number(2, dur) + number(11, 0) + number(13, queue) + number(14, stage)
    body += number(20, name) if name else b""
    if "correlation" in extra:
        body += number(1, extra["correlation"])
    if "grid" in extra:
        sizes = [extra.pop("grid"), extra.pop("block")]
        dims = [b"".join(number(i, n) for i, n in enumerate(size, 1)) for size in sizes]
        body += chunk(21, chunk(1, dims[0]) + chunk(2, dims[1]))
    for key, value in extra.items():
        body += chunk(6, chunk(1, key.replace("_", " ")) + chunk(2, str(value)))
    return packet(chunk(53, body), at=BASE + at)
