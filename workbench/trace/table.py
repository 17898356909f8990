"""The one columnar shape that every trace is read into.

Times are int64 nanoseconds counted from the trace's first event; adding ``Trace.base_ns`` gives
Unix time where the file told it. Text is dictionary-encoded: a column holds codes, the table of
strings stands beside it. ``-1`` (``NaN`` for floats) means *not recorded*, never zero.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Kind(IntEnum):
    """What an event is, the same for every era and vendor of the format."""

    OTHER = 0
    OPERATOR = 1
    ANNOTATION = 2
    RUNTIME = 3
    DRIVER = 4
    PYTHON = 5
    KERNEL = 6
    MEMCPY = 7
    MEMSET = 8
    DEVICE_ANNOTATION = 9
    SYNC = 10
    OVERHEAD = 11
    PROFILER = 12


DEVICE_WORK = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
"""The kinds that are work on a device; annotations mirrored to the device are not."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Events:
    """Duration events (phase X, and B/E pairs joined), sorted by start, longer first on ties."""

    ts: NDArray[np.int64]
    dur: NDArray[np.int64]
    name: NDArray[np.int32]
    kind: NDArray[np.uint8]
    category: NDArray[np.int16]
    lane: NDArray[np.int32]
    device: NDArray[np.int16]
    stream: NDArray[np.int32]
    correlation: NDArray[np.int64]
    external_id: NDArray[np.int64]
    sequence: NDArray[np.int64]
    python_id: NDArray[np.int64]
    python_parent: NDArray[np.int64]
    shapes: NDArray[np.int32]
    bytes: NDArray[np.int64]

    def __post_init__(self) -> None:
        lengths = {len(getattr(self, column.name)) for column in fields(self)}
        if len(lengths) > 1:
            raise ValueError(f"columns of different lengths: {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def end(self) -> NDArray[np.int64]:
        """End of every event in nanoseconds."""
        return self.ts + self.dur

    def rows(self, *kinds: Kind) -> NDArray[np.intp]:
        """Row numbers of the given kinds, in time order."""
        return np.flatnonzero(np.isin(self.kind, kinds))


@dataclass(frozen=True, kw_only=True)
class Lane:
    """A horizontal line of the trace: a host thread or a device stream."""

    pid: str
    tid: str
    process: str = ""
    thread: str = ""


@dataclass(frozen=True, kw_only=True)
class Device:
    """A device that the trace's header describes."""

    index: int
    type: str
    """One of cuda, hip, xpu, mtia, mlu, npu, hpu, tpu, cpu; ``cuda`` when nothing says otherwise."""
    name: str = ""
    arch: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One way in which a trace cannot be trusted, and which numbers that makes void."""

    code: str
    message: str
    count: int = 1
    share: float | None = None
    voids: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Flows:
    """Arrows between events: phase s (start), t (step), f (finish)."""

    ts: NDArray[np.int64]
    id: NDArray[np.int64]
    lane: NDArray[np.int32]
    category: NDArray[np.int16]
    phase: NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryEvents:
    """``[memory]`` instants: every allocation (positive) and release (negative)."""

    ts: NDArray[np.int64]
    bytes: NDArray[np.int64]
    total_allocated: NDArray[np.int64]
    total_reserved: NDArray[np.int64]
    address: NDArray[np.int64]
    device_type: NDArray[np.int16]
    device_index: NDArray[np.int16]
    lane: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """One trace file as columns."""

    source: str
    """File name without its folder."""
    events: Events
    names: tuple[str, ...]
    categories: tuple[str, ...]
    """The file's own category names; ``Events.kind`` is their common meaning."""
    shapes: tuple[str, ...]
    lanes: tuple[Lane, ...]
    flows: Flows
    memory: MemoryEvents
    devices: tuple[Device, ...] = ()
    base_ns: int | None = None
    """Unix time of the first event in ns; ``None`` when the file has only relative time."""
    rank: int | None = None
    world_size: int | None = None
    header: Mapping[str, object] = field(default_factory=dict)
    """Small header entries, as found (deviceProperties, distributedInfo, with_stack, …)."""
    violations: tuple[Violation, ...] = ()
    """What reading itself had to repair, cut or leave out."""

    def name_codes(self, predicate: Callable[[str], bool]) -> NDArray[np.int32]:
        """Codes of the names for which ``predicate(name)`` is true."""
        return np.array([i for i, name in enumerate(self.names) if predicate(name)], dtype=np.int32)

