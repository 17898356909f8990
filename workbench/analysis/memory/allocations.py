"""Every allocation with its life: who asked when, for how much, until when."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]
Rows = NDArray[np.int64]

BEFORE = np.int64(-(2**62))
"""Start of what was held before anything was recorded."""
AFTER = np.int64(2**62)
"""End of what is held when the recording ends."""
TAKES, GIVES = 1, -1


class MemoryDevice(NamedTuple):
    """A memory: ``type`` as c10::DeviceType has it, 0 the host, and the number of the device."""

    type: int
    number: int

    @property
    def label(self) -> str:
        """``CPU``, ``GPU 0`` or, of other accelerators, ``device 0``."""
        if self.type == 0:
            return "CPU"
        return f"{'GPU' if self.type in _GPUS else 'device'} {self.number}"


_GPUS = (1, 6, 12)
"""CUDA (ROCm too), HIP, XPU."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Allocations:
    """One value an allocation, in the order in which they began."""

    start: Times
    end: Times
    bytes: NDArray[np.int64]
    device: NDArray[np.int16]
    """Place in ``devices``."""
    devices: tuple[MemoryDevice, ...]
    taken: Rows
    """Record by which it began, or -1."""
    given: Rows
    """Record by which it ended, or -1."""

    def __len__(self) -> int:
        return len(self.start)

    def of(self, device: int) -> NDArray[np.intp]:
        """Places of the allocations of one device."""
        return np.flatnonzero(self.device == device)

    def live_at(self, device: int, at: int) -> NDArray[np.intp]:
        """Places of what a device holds at an instant, what begins then included."""
        return np.flatnonzero((self.device == device) & (self.start <= at) & (self.end > at))


@dataclass(frozen=True, kw_only=True, eq=False)
class StepRanges:
    """When steps ran on the host, and what told them."""

    start: Times
    end: Times
    numbers: tuple[int, ...]
    source: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Bytes over time: ``value`` holds from ``ts`` until the next one."""

    ts: Times
    value: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ts)

    def at(self, moments: Times) -> NDArray[np.int64]:
        """The value at each moment; before the first one, the first."""
        place = np.searchsorted(self.ts, moments, "right") - 1
        return self.value[np.maximum(place, 0)]

    @property
    def peak(self) -> tuple[int, int]:
        """The largest value and when it is first reached."""
        place = int(self.value.argmax())
        return int(self.value[place]), int(self.ts[place])


def pair(
    *,
    ts: Times,
    sign: NDArray[np.int8],
    size: NDArray[np.int64],
    address: NDArray[np.int64],
    device: NDArray[np.int16],
    devices: tuple[MemoryDevice, ...],
) -> Allocations:
    """Join what was taken to what was given back, by device and address.

    What is given back without having been taken was held before; what is taken anew at an address
    whose release was not recorded ends there.

    Args:
        ts: When, in time order.
        sign: ``TAKES`` or ``GIVES``.
        size: Bytes, positive.
        address: Where.
        device: Place in ``devices``.
        devices: The memories.
    """
    order = np.lexsort((np.arange(len(ts)), address, device))
    same = np.zeros(len(ts), bool)
    if len(ts):
        same[:-1] = (device[order[1:]] == device[order[:-1]]) & (
            address[order[1:]] == address[order[:-1]]
        )
    following = np.full(len(ts), -1, np.int64)
    following[order[:-1][same[:-1]]] = order[1:][same[:-1]]
    led = np.zeros(len(ts), bool)
    takes = sign == TAKES
    has_next = following >= 0
    led[following[takes & has_next]] = True
    taken = np.flatnonzero(takes)
    orphan = np.flatnonzero(~takes & ~led)  # given back without having been taken
    next_of = following[taken]
    ends = np.where(next_of >= 0, ts[np.maximum(next_of, 0)] if len(ts) else 0, AFTER)
    gives = (next_of >= 0) & ~takes[np.maximum(next_of, 0)] if len(ts) else next_of >= 0
    return sorted_by_start(
        Allocations(
            start=np.concatenate((np.full(len(orphan), BEFORE), ts[taken])),
            end=np.concatenate((ts[orphan], ends)).astype(np.int64),
            bytes=np.concatenate((size[orphan], size[taken])),
            device=np.concatenate((device[orphan], device[taken])),
            devices=devices,
            taken=np.concatenate((np.full(len(orphan), -1), taken)).astype(np.int64),
            given=np.concatenate((orphan, np.where(gives, next_of, -1))).astype(np.int64),
        )
    )


def sorted_by_start(found: Allocations) -> Allocations:
    """The same in the order in which they began."""
    order = np.argsort(found.start, kind="stable")
    return Allocations(
        start=found.start[order],
        end=found.end[order],
        bytes=found.bytes[order],
        device=found.device[order],
        devices=found.devices,
        taken=found.taken[order],
        given=found.given[order],
    )


def live_curve(found: Allocations, device: int, since: int) -> Curve:
    """Bytes that the known allocations of a device hold, from ``since`` on."""
    mine = found.of(device)
    up, down = found.start[mine], found.end[mine]
    size = found.bytes[mine]
    ended = down < AFTER
    moments = np.concatenate((np.maximum(up, since), down[ended]))
    change = np.concatenate((size, -size[ended]))
    order = np.lexsort((change > 0, moments))  # at one instant first what is given back
    moments, level = moments[order], np.cumsum(change[order])
    last = np.append(moments[1:] != moments[:-1], True) if len(moments) else np.empty(0, bool)
    return Curve(ts=moments[last], value=level[last])
