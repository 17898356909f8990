"""The answers about one memory, from what was recorded and who holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.memory.allocations import Curve, MemoryDevice, StepRanges
from workbench.analysis.memory.growth import Growth, growth, step_table, survivors
from workbench.analysis.memory.owners import CATEGORIES, Owners

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from workbench.analysis.memory.recorded import Recorded

MOST_POINTS = 1000
"""Moments of a drawn curve; each holds the most of its stretch."""
HOLDER_COLUMNS = ("category", "module", "operator", "line", "bytes", "allocations")
GROWTH_COLUMNS = (
    *("category", "module", "operator", "line", "bytes_per_step", "allocations_per_step"),
)
BEFORE_TEXT = "held before the recording"


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceMemory:
    """What is known of one memory."""

    device: MemoryDevice
    peak_bytes: int
    peak_ns: int
    absolute: bool
    """Whether what was held before the recording is counted; on the CPU it is not."""
    before_bytes: int
    """Of the peak, what nobody saw begin."""
    reserved_bytes: int | None
    """Held of the driver at the peak."""
    reserved_peak_bytes: int | None
    allocations: int | None
    """Seen to begin; ``None`` where the file holds no addresses."""
    by_category: Mapping[str, int] | None
    """Bytes at the peak; they sum to it."""
    holders: pd.DataFrame | None
    """Who holds the peak, largest first."""
    steps: pd.DataFrame | None
    steps_source: str | None
    growth: Growth | None
    growing: pd.DataFrame | None
    """What steps took and nobody gave back, per step, largest first."""
    phases: pd.DataFrame | None = None
    """The peak of every phase, validation among them; of traces only."""
    timeline: pd.DataFrame
    """``ts_ns``, ``live_bytes``, ``reserved_bytes`` and a column a category."""


def answer(
    recorded: Recorded, owners: Owners, steps: StepRanges | None
) -> tuple[DeviceMemory, ...]:
    """The answers for every memory; the one with the largest peak of any accelerator first."""
    found = [
        _device(recorded, owners, steps, number)
        for number in range(len(recorded.devices))
        if number in recorded.live and len(recorded.live[number])
    ]
    return tuple(sorted(found, key=lambda each: (each.device.type == 0, -each.peak_bytes)))


def _device(
    recorded: Recorded, owners: Owners, steps: StepRanges | None, device: int
) -> DeviceMemory:
    curve, allocations = recorded.live[device], recorded.allocations
    peak, at = curve.peak
    followed = len(allocations.of(device)) > 0
    reserved = recorded.reserved.get(device)
    live = allocations.live_at(device, at)
    before = peak - int(allocations.bytes[live].sum()) if followed else 0
    table = grows = growing = None
    if steps is not None and len(steps.numbers):
        table = step_table(curve, allocations, device, steps)
        grows = growth(table)
        if followed:
            kept, of_steps = survivors(allocations, device, steps)
            growing = _growing(owners, allocations.bytes, kept, of_steps)
    holders = _holders(owners, allocations.bytes, live, max(before, 0)) if followed else None
    return DeviceMemory(
        device=recorded.devices[device],
        peak_bytes=peak,
        peak_ns=at,
        absolute=device in recorded.absolute,
        before_bytes=max(before, 0),
        reserved_bytes=None if reserved is None else int(reserved.at(np.array([at]))[0]),
        reserved_peak_bytes=None if reserved is None else reserved.peak[0],
        allocations=int((allocations.taken[allocations.of(device)] >= 0).sum())
        if followed
        else None,
        by_category=None if holders is None else _by_category(holders),
        holders=holders,
        steps=table,
        steps_source=None if steps is None else steps.source,
        growth=grows,
        growing=growing,
        timeline=_timeline(recorded, owners, device, curve, reserved),
    )


def _by_category(holders: pd.DataFrame) -> dict[str, int]:
    sums = holders.groupby("category")["bytes"].sum()
    return {name: int(sums.get(name, 0)) for name in CATEGORIES}


def _texts(owners: Owners, chosen: NDArray[np.intp]) -> dict[str, object]:
    names = np.array(owners.texts, object)
    columns: dict[str, object] = {"category": np.array(CATEGORIES, object)[owners.category[chosen]]}
    for name in ("module", "operator", "line"):
        columns[name] = names[getattr(owners, name)[chosen]]
    return columns


def _holders(
    owners: Owners, size: NDArray[np.int64], live: NDArray[np.intp], before: int
) -> pd.DataFrame:
    import pandas as pd

    table = pd.DataFrame({**_texts(owners, live), "bytes": size[live], "allocations": 1})
    if before:
        row = ("unknown", "", BEFORE_TEXT, "", before, pd.NA)
        extra = pd.DataFrame([row], columns=list(HOLDER_COLUMNS))
        table = pd.concat([table, extra], ignore_index=True) if len(table) else extra
    keys = ["category", "module", "operator", "line"]
    table["allocations"] = table["allocations"].astype("Int64")
    grouped = table.groupby(keys, sort=False).sum(min_count=1).reset_index()
    grouped["bytes"] = grouped["bytes"].astype("int64")
    return grouped.sort_values("bytes", ascending=False, ignore_index=True, kind="stable")


def _growing(
    owners: Owners, size: NDArray[np.int64], kept: NDArray[np.intp], steps: int
) -> pd.DataFrame:
    import pandas as pd

    table = pd.DataFrame({**_texts(owners, kept), "bytes": size[kept], "count": 1})
    keys = ["category", "module", "operator", "line"]
    grouped = table.groupby(keys, sort=False).sum().reset_index()
    grouped["bytes_per_step"] = grouped.pop("bytes") / max(steps, 1)
    grouped["allocations_per_step"] = grouped.pop("count") / max(steps, 1)
    return grouped.sort_values("bytes_per_step", ascending=False, ignore_index=True, kind="stable")


def _timeline(
    recorded: Recorded, owners: Owners, device: int, curve: Curve, reserved: Curve | None
) -> pd.DataFrame:
    import pandas as pd

    places = _worst_places(curve)
    moments = curve.ts[places]
    columns: dict[str, object] = {"ts_ns": moments, "live_bytes": curve.value[places]}
    if reserved is None:
        columns["reserved_bytes"] = pd.array([pd.NA] * len(moments), dtype="Int64")
    else:
        columns["reserved_bytes"] = pd.array(reserved.at(moments), dtype="Int64")
    mine = recorded.allocations.of(device)
    if len(mine):
        columns |= _layers(recorded, owners, mine, moments, curve.value[places])
    return pd.DataFrame(columns)


def _layers(
    recorded: Recorded,
    owners: Owners,
    mine: NDArray[np.intp],
    moments: NDArray[np.int64],
    live: NDArray[np.int64],
) -> dict[str, object]:
    """Bytes of every category at each moment; what nobody saw begin is unknown."""
    found, layers = recorded.allocations, {}
    category = owners.category[mine]
    start, end, size = found.start[mine], found.end[mine], found.bytes[mine]
    for code, name in enumerate(CATEGORIES):
        here = category == code
        up, down = np.argsort(start[here], kind="stable"), np.argsort(end[here], kind="stable")
        taken = np.append(0, np.cumsum(size[here][up]))
        given = np.append(0, np.cumsum(size[here][down]))
        layers[name] = (
            taken[np.searchsorted(start[here][up], moments, "right")]
            - given[np.searchsorted(end[here][down], moments, "right")]
        )
    rest = live - sum(layers.values())
    layers["unknown"] = np.maximum(layers["unknown"] + rest, 0)
    return dict(layers)


def _worst_places(curve: Curve) -> NDArray[np.intp]:
    """Of long curves the largest value of each equal stretch."""
    if len(curve) <= MOST_POINTS:
        return np.arange(len(curve))
    edges = np.linspace(0, len(curve), MOST_POINTS + 1).astype(np.intp)
    return np.array(
        [low + int(curve.value[low:high].argmax()) for low, high in pairwise(edges.tolist())]
    )
