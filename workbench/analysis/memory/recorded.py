"""Allocations and totals from the ``[memory]`` events of a trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.memory.allocations import (
    GIVES,
    TAKES,
    Allocations,
    Curve,
    MemoryDevice,
    pair,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from workbench.trace.table import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class Recorded:
    """What an allocator did on all its devices, whoever wrote it down."""

    allocations: Allocations
    """Empty where the file holds no addresses to follow."""
    live: Mapping[int, Curve]
    """Bytes in use by place of the device."""
    reserved: Mapping[int, Curve]
    """Bytes held of the driver; a device of which nobody told is not there."""
    absolute: frozenset[int]
    """Devices whose live bytes count what was held before the recording began."""

    @property
    def devices(self) -> tuple[MemoryDevice, ...]:
        """The memories, as ``allocations`` numbers them."""
        return self.allocations.devices


def recorded(trace: Trace) -> Recorded | None:
    """The allocator's records of a trace; ``None`` where it holds none."""
    memory = trace.memory
    if not len(memory.ts):
        return None
    order = np.argsort(memory.ts, kind="stable")
    kind, index = memory.device_type[order], memory.device_index[order]
    pairs = sorted(set(zip(kind.tolist(), index.tolist(), strict=True)))
    devices = tuple(MemoryDevice(*each) for each in pairs)
    place = np.zeros(len(order), np.int16)
    for number, each in enumerate(devices):
        place[(kind == each.type) & (index == each.number)] = number
    size, address = memory.bytes[order], memory.address[order]
    known = (size != 0) & (address >= 0)
    found = pair(
        ts=memory.ts[order][known],
        sign=np.where(size[known] > 0, TAKES, GIVES).astype(np.int8),
        size=np.abs(size[known]),
        address=address[known],
        device=place[known],
        devices=devices,
    )
    rows = order[known]
    found = Allocations(
        start=found.start,
        end=found.end,
        bytes=found.bytes,
        device=found.device,
        devices=devices,
        taken=_rows(rows, found.taken),
        given=_rows(rows, found.given),
    )
    ts, total, held = memory.ts[order], memory.total_allocated[order], memory.total_reserved[order]
    live: dict[int, Curve] = {}
    reserved: dict[int, Curve] = {}
    absolute: set[int] = set()
    for number in range(len(devices)):
        mine = place == number
        told = mine & (total >= 0)
        if told.any():
            live[number] = Curve(ts=ts[told], value=total[told])
            absolute |= {number} if devices[number].type else set()
        else:  # torch before 1.12 told neither totals nor addresses
            level = np.cumsum(size[mine])
            live[number] = Curve(ts=ts[mine], value=level - min(int(level.min()), 0))
        told = mine & (held > 0)
        if told.any():
            reserved[number] = Curve(ts=ts[told], value=held[told])
    return Recorded(allocations=found, live=live, reserved=reserved, absolute=frozenset(absolute))


def _rows(rows: NDArray[np.intp], place: NDArray[np.int64]) -> NDArray[np.int64]:
    if not len(rows):
        return place
    return np.where(place >= 0, rows[np.maximum(place, 0)], -1).astype(np.int64)
