"""How far each operator is from what the device could do, and what could be won at most.

An operator cannot be faster than its FLOPs at the peak of its type, nor than its bytes at the
bandwidth of the memory. The larger of the two times is its roof. What it takes beyond is its
distance to the roof: the list is sorted by it, since that is what could be won.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from workbench.analysis.costs.cost import MATRIX_KINDS

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.costs.join import Costs
    from workbench.analysis.costs.peaks import Peaks

Regime = Literal["compute", "bandwidth", "overhead"]
SHORT_NS = {True: 5_000.0, False: 10_000.0}
"""Own choice: a call that takes less (on a device, on the host) is mostly its start."""
FAR = 0.5
"""Below this share of its roof a short call is limited by neither arithmetic nor memory."""
ROOF_COLUMNS = (
    *("name", "shapes", "kind", "dtype", "calls", "time_ns", "flops", "bytes", "intensity"),
    *("tflop_s", "gb_s", "roof_ns", "distance_ns", "roof_share", "regime"),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Roofline:
    """The counted operators against the peaks of their device."""

    table: pd.DataFrame
    """Farthest from its roof first: the ``distance_ns`` is what could be won at most."""
    peaks: Peaks
    time_ns: int
    """Time of the operators whose roof is known."""
    roof_ns: int
    """The least that they could take."""
    whole_ns: int
    """All time, also of what has no count."""
    steps: int

    @property
    def share(self) -> float | None:
        """The roof as a share of the time, of the operators whose roof is known."""
        return self.roof_ns / self.time_ns if self.time_ns else None

    @property
    def coverage(self) -> float | None:
        """Share of all time whose roof is known."""
        return self.time_ns / self.whole_ns if self.whole_ns else None


def roofline(costs: Costs, peaks: Peaks) -> Roofline:
    """Hold every counted operator against the roof of its device."""
    table = costs.table[(costs.table["reason"].isna()) & (costs.table["kind"] != "view")].copy()
    calls = np.maximum(table["calls"].to_numpy(np.float64), 1)
    time = table["time_ns"].to_numpy(np.float64)
    flops = table["flops"].to_numpy(np.float64, na_value=0.0)
    moved = table["bytes"].to_numpy(np.float64, na_value=0.0)
    computing = np.array([peaks.flops(dtype) or np.nan for dtype in table["dtype"]])
    moving = np.array([peaks.bandwidth(size) or np.nan for size in moved / calls])
    by_flops = np.where(flops > 0, flops / computing * 1e9, 0.0)
    by_bytes = np.where(moved > 0, moved / moving * 1e9, 0.0)
    roof = np.fmax(by_flops, by_bytes)
    # Of a product in a type without a peak nobody knows the roof.
    matrix = table["kind"].isin(MATRIX_KINDS).to_numpy()
    roof[matrix & (flops > 0) & ~np.isfinite(by_flops)] = np.nan
    known = np.isfinite(roof) & (time > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(known, roof / time, np.nan)
        table["intensity"] = np.where(moved > 0, flops / moved, np.nan)
        table["tflop_s"] = np.where(time > 0, flops / time / 1e3, np.nan)
        table["gb_s"] = np.where(time > 0, moved / time, np.nan)
    table["roof_ns"] = roof
    table["distance_ns"] = np.where(known, np.maximum(time - roof, 0), np.nan)
    table["roof_share"] = share
    short = (time / calls < SHORT_NS[costs.on_device]) & (share < FAR)
    limit = np.where(short, "overhead", np.where(by_flops >= by_bytes, "compute", "bandwidth"))
    table["regime"] = [str(name) if told else None for name, told in zip(limit, known, strict=True)]
    table = table[list(ROOF_COLUMNS)].sort_values(
        ["distance_ns", "time_ns"], ascending=False, na_position="last", kind="stable"
    )
    return Roofline(
        table=table.reset_index(drop=True),
        peaks=peaks,
        time_ns=int(time[known].sum()),
        roof_ns=int(np.minimum(roof, time)[known].sum()),
        whole_ns=costs.time_ns,
        steps=costs.steps,
    )


def by_kind(found: Roofline) -> pd.DataFrame:
    """The same by kind of work: time, FLOPs, bytes and distance, largest distance first."""
    known = found.table[found.table["roof_ns"].notna()]
    sums = known.groupby("kind", as_index=False)[
        ["calls", "time_ns", "flops", "bytes", "roof_ns", "distance_ns"]
    ].sum()
    sums["roof_share"] = (sums["roof_ns"] / sums["time_ns"]).clip(upper=1.0)
    return sums.sort_values("distance_ns", ascending=False).reset_index(drop=True)
