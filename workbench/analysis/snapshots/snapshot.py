"""The one shape that memory snapshots of all releases of torch are read into."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Action(IntEnum):
    """What the allocator did."""

    OTHER = 0
    ALLOC = 1
    FREE_REQUESTED = 2
    FREE_COMPLETED = 3
    SEGMENT_ALLOC = 4
    SEGMENT_FREE = 5
    OUT_OF_MEMORY = 6


class Frame(NamedTuple):
    """A line of a stack, as the snapshot writes it."""

    name: str
    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Block:
    """A part of a segment: in use, waiting for a stream, or free."""

    address: int
    bytes: int
    requested: int
    """What the program asked for; the rest is rounding."""
    state: str
    """``active_allocated``, ``active_awaiting_free`` (or ``active_pending_free``), ``inactive``."""
    stack: int
    """Place in ``Snapshot.stacks``, or -1."""

    @property
    def live(self) -> bool:
        """Whether somebody holds it; what waits for a stream is held too."""
        return self.state != "inactive"


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Memory that the allocator holds of the driver."""

    device: int
    address: int
    bytes: int
    stream: int
    kind: str
    """``large`` or ``small``: which requests are served from it."""
    expandable: bool
    blocks: tuple[Block, ...]


@dataclass(frozen=True, kw_only=True)
class OutOfMemory:
    """A request that could not be served."""

    at: int
    """Row in the actions."""
    device: int
    bytes: int
    device_free: int | None
    """What the driver had left."""
    stack: int


class Annotation(NamedTuple):
    """A range of the user's that torch noted (``record_function``)."""

    name: str
    begins: bool
    at_ns: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """A memory snapshot; columns have one value an action, in the order in which they happened.

    ``ts`` is nanoseconds since the first action, or its number where the release of torch wrote no
    times (before 2.2): ``has_times`` tells.
    """

    source: str
    ts: NDArray[np.int64]
    device: NDArray[np.int16]
    action: NDArray[np.uint8]
    address: NDArray[np.int64]
    bytes: NDArray[np.int64]
    stack: NDArray[np.int32]
    stacks: tuple[tuple[Frame, ...], ...]
    segments: tuple[Segment, ...]
    failures: tuple[OutOfMemory, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    has_times: bool = True
    base_ns: int | None = None
    """Unix time of the first action."""

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def devices(self) -> tuple[int, ...]:
        """Devices that have a segment or an action."""
        return tuple(sorted({*self.device.tolist(), *(each.device for each in self.segments)}))
