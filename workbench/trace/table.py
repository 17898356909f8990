"""The one columnar shape that every trace is read into.

Times are int64 nanoseconds counted from the trace's first event; adding ``Trace.base_ns`` gives
Unix time where the file told it. Text is dictionary-encoded: a column holds codes, the table of
strings stands beside it. ``-1`` (``NaN`` for floats) means *not recorded*, never zero.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

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


_NONE32 = np.empty(0, np.int32)
_NONE64 = np.empty(0, np.int64)
_NONEFLOAT = np.empty(0, np.float32)


def _absent_where_not_given(table: Any, length: int) -> None:
    """Columns that were left out become constants *not recorded* that take no memory."""
    for column in fields(table):
        values = getattr(table, column.name)
        if values is _NONE32 or values is _NONE64 or values is _NONEFLOAT:
            missing = -1 if values.dtype.kind == "i" else np.nan
            absent = np.broadcast_to(values.dtype.type(missing), length)
            object.__setattr__(table, column.name, absent)


@dataclass(frozen=True, kw_only=True, eq=False)
class Events:
    """Duration events (phase X, and B/E pairs joined), sorted by start, longer first on ties.

    ``device`` and ``stream`` are those of device records; host records have -1. A column that the
    trace does not hold is a read-only constant that takes no memory.
    """

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
    forward_thread: NDArray[np.int64] = field(default_factory=lambda: _NONE64)
    """``Fwd thread id`` of backward operators, beside ``sequence``."""
    python_module: NDArray[np.int32] = field(default_factory=lambda: _NONE32)
    """``Python module id``: which instance of the module class that the name tells."""
    types: NDArray[np.int32] = field(default_factory=lambda: _NONE32)
    """Code into ``Trace.types``."""
    strides: NDArray[np.int32] = field(default_factory=lambda: _NONE32)
    """Code into ``Trace.strides``."""
    values: NDArray[np.int32] = field(default_factory=lambda: _NONE32)
    """Code into ``Trace.values``."""
    stack: NDArray[np.int32] = field(default_factory=lambda: _NONE32)
    """Code into ``Trace.stacks`` (``Call stack`` of torch before 2.0)."""

    def __post_init__(self) -> None:
        _absent_where_not_given(self, len(self.ts))
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
        return np.flatnonzero(self.of_kind(*kinds))

    def of_kind(self, *kinds: Kind) -> NDArray[np.bool_]:
        """Whether each event is of one of the kinds; ten times as fast as asking ``np.isin``."""
        found = np.zeros(len(self), bool)
        for kind in kinds:
            found |= self.kind == kind
        return found


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
    """One of cuda, hip, xpu, mtia, mlu, npu, hpu, tpu, cpu, fpga (lane files); ``other`` where
    nothing in the trace tells."""
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
    """Arrows between events: phase s (start), t (step), f (finish), in time order."""

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
class LaunchConfigurations:
    """How kernels were launched: one line for each row of ``Events`` that tells it."""

    row: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Row of the kernel in ``Events``, rising."""
    grid: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 3), np.int32))
    block: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 3), np.int32))
    registers: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """Registers per thread."""
    shared_memory: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """Bytes of shared memory per block."""
    occupancy: NDArray[np.float32] = field(default_factory=lambda: _NONEFLOAT)
    """Estimated achieved occupancy in percent."""
    blocks_per_sm: NDArray[np.float32] = field(default_factory=lambda: _NONEFLOAT)
    warps_per_sm: NDArray[np.float32] = field(default_factory=lambda: _NONEFLOAT)
    queued: NDArray[np.int64] = field(default_factory=lambda: _NONE64)
    """When the kernel was queued, as the driver says it; CUPTI's 0 means that it was not asked."""
    graph: NDArray[np.int64] = field(default_factory=lambda: _NONE64)
    """Which graph the kernel is a node of."""
    graph_node: NDArray[np.int64] = field(default_factory=lambda: _NONE64)

    def __post_init__(self) -> None:
        _absent_where_not_given(self, len(self.row))


@dataclass(frozen=True, kw_only=True, eq=False)
class Copies:
    """Copies and sets whose bandwidth the trace tells; their bytes stand in ``Events``."""

    row: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Row in ``Events``, rising."""
    bandwidth: NDArray[np.float64] = field(default_factory=lambda: np.empty(0, np.float64))
    """GB/s, from the unrounded duration: where times are whole microseconds it is exacter than
    bytes over ``dur``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Waits:
    """What synchronizations on a device wait for (torch's ``enable_cuda_sync_events``)."""

    row: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Row of the ``cuda_sync`` record in ``Events``, rising."""
    stream: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """The stream on which the event was recorded."""
    event: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Id of the event."""
    recorded_by: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Correlation of the call that recorded the event."""


@dataclass(frozen=True, kw_only=True)
class Collective:
    """What the trace tells about one communication record, host or device."""

    row: int
    """Row in ``Events``."""
    name: str
    group: str = ""
    description: str = ""
    """Description of the process group."""
    group_size: int | None = None
    ranks: str = ""
    """Ranks of the group, as the trace writes them."""
    dtype: str = ""
    in_elements: int | None = None
    out_elements: int | None = None
    sequence: int | None = None
    rank: int | None = None
    source: int | None = None
    destination: int | None = None
    in_split: str = ""
    """Elements to each rank of an uneven all-to-all, as the trace writes them."""
    out_split: str = ""
    rank_start: int | None = None
    """With ``rank_stride``, the ranks of a group whose list the trace leaves out or cuts short."""
    rank_stride: int | None = None
    communicator: str = ""
    """``Comms Id``: the communicator, the same on all its ranks."""
    asynchronous: bool | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Instants:
    """Moments without a length (phase i), other than ``[memory]``."""

    ts: NDArray[np.int64] = field(default_factory=lambda: _NONE64)
    name: NDArray[np.int32] = field(default_factory=lambda: _NONE32)
    category: NDArray[np.int16] = field(default_factory=lambda: np.empty(0, np.int16))
    lane: NDArray[np.int32] = field(default_factory=lambda: _NONE32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Counters:
    """Values over time (phase C); ``series`` is a code into ``names``."""

    ts: NDArray[np.int64] = field(default_factory=lambda: _NONE64)
    series: NDArray[np.int32] = field(default_factory=lambda: _NONE32)
    value: NDArray[np.float64] = field(default_factory=lambda: np.empty(0, np.float64))
    lane: NDArray[np.int32] = field(default_factory=lambda: _NONE32)
    names: tuple[str, ...] = ()
    """``counter`` or ``counter: series`` where one counter has several series."""


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
    """Input dimensions of operators as compact JSON, such as ``[[64,3,224,224],[]]``."""
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
    types: tuple[str, ...] = ()
    strides: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    """What operators were called with besides tensors (``Concrete Inputs``), as JSON."""
    stacks: tuple[str, ...] = ()
    launch_configurations: LaunchConfigurations = field(default_factory=LaunchConfigurations)
    copies: Copies = field(default_factory=Copies)
    waits: Waits = field(default_factory=Waits)
    collectives: tuple[Collective, ...] = ()
    instants: Instants = field(default_factory=Instants)
    counters: Counters = field(default_factory=Counters)

    def name_codes(self, predicate: Callable[[str], bool]) -> NDArray[np.int32]:
        """Codes of the names for which ``predicate(name)`` is true."""
        return np.array([i for i, name in enumerate(self.names) if predicate(name)], dtype=np.int32)
