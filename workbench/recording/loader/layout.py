"""The side file of a process: records of one fixed size, appended whole, readable to the last."""

import mmap
import os
import struct
import threading
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

from workbench.store.columns import ITEM

FIELDS_MOST = 27
SIZE = 8 * (FIELDS_MOST + 1)
"""Bytes of a record: its kind and 27 whole numbers, each of 8 bytes."""
CHUNK = 256 * SIZE
"""Bytes by which a side file grows; what is not written yet is zero, and no kind of record."""
MISSING = -(2**63)
"""In place of a number that was not measured."""
_STRUCT = struct.Struct(f"<{FIELDS_MOST + 1}q")


class Kind(IntEnum):
    """What a record tells of."""

    START = 1
    """A worker is ready for its first index."""
    FETCH = 2
    """A batch was fetched and put together."""
    ITEM = 3
    """One sample of a batch, looked at closely."""
    SEND = 4
    """A batch was pickled and written to the pipe."""


FIELDS: dict[Kind, tuple[str, ...]] = {
    Kind.START: ("stream", "worker", "pid", "created_ns", "entered_ns", "ready_ns", "cpu_ns"),
    Kind.FETCH: (
        "epoch",
        "batch",
        "samples",
        "index_wait_start_ns",
        "index_wait_ns",
        "fetch_start_ns",
        "fetch_ns",
        "fetch_cpu_ns",
        "fetch_process_cpu_ns",
        "fetch_run_delay_ns",
        "read_bytes",
        "read_calls",
        "storage_bytes",
        "major_faults",
        "voluntary_switches",
        "involuntary_switches",
        "collate_start_ns",
        "collate_ns",
        "collate_cpu_ns",
        "collate_run_delay_ns",
        "batch_bytes",
        "failed",
        "probe_ns",
    ),
    Kind.ITEM: ("epoch", "batch", *ITEM),
    Kind.SEND: (
        "epoch",
        "batch",
        "serialize_start_ns",
        "serialize_ns",
        "serialize_cpu_ns",
        "send_ns",
        "sent_bytes",
        "send_run_delay_ns",
    ),
}
"""Names of the numbers of each kind, in their order. Times ending in ``start_ns``, ``created_ns``,
``entered_ns`` and ``ready_ns`` are CLOCK_MONOTONIC; all others are lengths."""


def pack(kind: Kind, *values: int) -> bytes:
    """One record; numbers that are not given are missing."""
    return _STRUCT.pack(kind, *values, *(_FILL[len(values)]))


def packer(kind: Kind) -> Callable[..., bytes]:
    """Packs records of a kind from all their numbers, faster than :func:`pack`."""
    packing = struct.Struct(f"<{len(FIELDS[kind]) + 1}q").pack
    number, rest = int(kind), struct.pack(f"<{FIELDS_MOST}q", *_FILL[0])[8 * len(FIELDS[kind]) :]

    def packed(*values: int) -> bytes:
        return packing(number, *values) + rest

    return packed


_FILL = [(MISSING,) * (FIELDS_MOST - used) for used in range(FIELDS_MOST + 1)]


class SideFile:
    """Puts records into a file one after the other; when the disk is full it falls silent.

    The file is mapped, so that a record costs no call into the system and is there for others as
    soon as it is written, also when this process is killed. Room is made in advance: a page of a
    full disk would end the process that touches it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._room: mmap.mmap | None = None
        self._used = 0
        self._lock = threading.Lock()
        """A worker's own thread and the one that sends its batches both write."""
        self._grow()

    def write(self, records: bytes) -> None:
        """Append whole records."""
        with self._lock:
            end = self._used + len(records)
            if self._room is not None and end > len(self._room):
                self._grow(end)
            if self._room is not None:
                self._room[self._used : end] = records
                self._used = end

    def close(self) -> None:
        """Write nothing more."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        room, self._room = self._room, None
        if room is not None:
            room.close()

    def _grow(self, least: int = 0) -> None:
        self._close()
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError:
            return
        try:
            while (size := os.fstat(file).st_size) < max(least, self._used + CHUNK):
                if os.write(file, bytes(CHUNK)) != CHUNK:
                    return
            self._room = mmap.mmap(file, size)
        except (OSError, ValueError):
            return
        finally:
            os.close(file)


def read(data: bytes) -> dict[Kind, list[dict[str, Any]]]:
    """Every whole record of a side file, by kind, with ``None`` for what is missing."""
    found: dict[Kind, list[dict[str, Any]]] = {kind: [] for kind in Kind}
    for kind, *values in _STRUCT.iter_unpack(data[: len(data) - len(data) % SIZE]):
        if kind in FIELDS:
            names = FIELDS[Kind(kind)]
            found[Kind(kind)].append(
                {
                    name: None if value == MISSING else value
                    for name, value in zip(names, values, strict=False)
                }
            )
    return found
