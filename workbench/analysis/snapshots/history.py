"""A snapshot's actions as allocations with their lives, worked out backwards from what is left.

The allocator keeps only the last actions (``max_entries``), so that a history begins in the middle:
what is live at its end is known from the segments, and every action undone leads back.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.memory.allocations import (
    AFTER,
    BEFORE,
    GIVES,
    TAKES,
    Allocations,
    Curve,
    MemoryDevice,
    live_curve,
    pair,
    sorted_by_start,
)
from workbench.analysis.memory.recorded import Recorded
from workbench.analysis.snapshots.snapshot import Action, Block, Snapshot

CUDA = 1
"""c10::DeviceType of what the caching allocator serves; ROCm too calls itself so."""
Stacks = NDArray[np.int64]


def history(snapshot: Snapshot) -> tuple[Recorded, Stacks]:
    """What the allocator did, and per allocation the place of its stack, or -1."""
    devices = tuple(MemoryDevice(CUDA, index) for index in snapshot.devices)
    place = {each.number: number for number, each in enumerate(devices)}
    rows = np.flatnonzero(np.isin(snapshot.action, (Action.ALLOC, Action.FREE_COMPLETED)))
    rows = rows[np.argsort(snapshot.ts[rows], kind="stable")]
    device = np.array([place[index] for index in snapshot.device[rows].tolist()], np.int16)
    sign = np.where(snapshot.action[rows] == Action.ALLOC, TAKES, GIVES).astype(np.int8)
    seen = pair(
        ts=snapshot.ts[rows],
        sign=sign,
        size=snapshot.bytes[rows],
        address=snapshot.address[rows],
        device=device,
        devices=devices,
    )
    stack = np.full(len(seen), -1, np.int64)
    known = seen.taken >= 0
    stack[known] = snapshot.stack[rows[seen.taken[known]]]
    still = {
        (int(seen.device[i]), int(snapshot.address[rows[seen.taken[i]]]))
        for i in np.flatnonzero(seen.end == AFTER).tolist()
    }
    left = [
        (place[segment.device], block)
        for segment in snapshot.segments
        for block in segment.blocks
        if block.live and (place[segment.device], block.address) not in still
    ]
    found, stacks = _with_left(seen, stack, left)
    since = int(snapshot.ts.min()) if len(snapshot) else 0
    numbers = range(len(devices))
    return (
        Recorded(
            allocations=found,
            live={number: _never_empty(live_curve(found, number, since)) for number in numbers},
            reserved={number: _reserved(snapshot, devices[number]) for number in numbers},
            absolute=frozenset(numbers),
        ),
        stacks,
    )


def given_rows(snapshot: Snapshot) -> NDArray[np.intp]:
    """Rows of the actions that ``Allocations.taken`` and ``given`` count."""
    rows = np.flatnonzero(np.isin(snapshot.action, (Action.ALLOC, Action.FREE_COMPLETED)))
    return rows[np.argsort(snapshot.ts[rows], kind="stable")]


def _with_left(
    seen: Allocations, stack: Stacks, left: Sequence[tuple[int, Block]]
) -> tuple[Allocations, Stacks]:
    """With the blocks that are live at the end and whose begin was not kept."""
    count = len(left)
    none = np.full(count, -1, np.int64)
    whole = Allocations(
        start=np.concatenate((np.full(count, BEFORE), seen.start)),
        end=np.concatenate((np.full(count, AFTER), seen.end)),
        bytes=np.concatenate((np.array([b.bytes for _, b in left], np.int64), seen.bytes)),
        device=np.concatenate((np.array([d for d, _ in left], np.int16), seen.device)),
        devices=seen.devices,
        taken=np.concatenate((none, seen.taken)),
        given=np.concatenate((none, seen.given)),
    )
    stacks = np.concatenate((np.array([b.stack for _, b in left], np.int64), stack))
    return sorted_by_start(whole), stacks[np.argsort(whole.start, kind="stable")]


def _never_empty(curve: Curve) -> Curve:
    if len(curve):
        return curve
    return Curve(ts=np.zeros(1, np.int64), value=np.zeros(1, np.int64))


def _reserved(snapshot: Snapshot, device: MemoryDevice) -> Curve:
    """Bytes held of the driver: what is held at the end, less what came since each moment."""
    held = sum(each.bytes for each in snapshot.segments if each.device == device.number)
    rows = np.flatnonzero(
        (snapshot.device == device.number)
        & np.isin(snapshot.action, (Action.SEGMENT_ALLOC, Action.SEGMENT_FREE))
    )
    change = np.where(
        snapshot.action[rows] == Action.SEGMENT_ALLOC, snapshot.bytes[rows], -snapshot.bytes[rows]
    )
    since = int(snapshot.ts.min()) - 1 if len(snapshot) else 0
    return Curve(
        ts=np.append(since, snapshot.ts[rows]),
        value=np.append(0, np.cumsum(change)) + (held - int(change.sum())),
    )
