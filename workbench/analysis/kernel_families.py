"""Kernels by family: where the device's time goes, and how much of it nobody could classify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.analysis.families import OTHER

if TYPE_CHECKING:
    import pandas as pd

FAMILY_COLUMNS = (
    *("device", "family", "kernels", "calls", "total_ns", "share"),
    *("tensor_core_share", "occupancy"),
)
UNCLASSIFIED = OTHER
"""The family of names that no pattern knows: its share is shown, not spread over the others."""


def family_table(kernels: pd.DataFrame) -> pd.DataFrame:
    """One row a device and family, longest first.

    ``kernels`` counts different names. ``tensor_core_share`` is the share of the family's time in
    kernels whose name tells that they use tensor cores, missing where no name tells either way;
    ``occupancy`` is weighted by time over the kernels that record it.

    Args:
        kernels: The table of ``kernel_table``.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for (device, family), own in kernels.groupby(["device", "family"], sort=True):
        time = own["total_ns"].to_numpy(np.float64)
        told = own["tensor_core"].notna().to_numpy()
        using = (own["tensor_core"] == True).to_numpy()  # noqa: E712  object column with None
        occupancy = own["occupancy"].to_numpy(np.float64)
        known = np.isfinite(occupancy)
        rows.append(
            {
                "device": device,
                "family": family,
                "kernels": len(own),
                "calls": int(own["calls"].sum()),
                "total_ns": int(own["total_ns"].sum()),
                "share": float(own["share"].sum()),
                "tensor_core_share": _ratio(time[using].sum(), time[told].sum()),
                "occupancy": _ratio((occupancy * time)[known].sum(), time[known].sum()),
            }
        )
    rows.sort(key=lambda row: (-row["total_ns"], row["device"], row["family"]))
    table = pd.DataFrame(rows, columns=list(FAMILY_COLUMNS))
    return table.astype({"tensor_core_share": "float64", "occupancy": "float64"})


def unclassified_share(families: pd.DataFrame) -> float | None:
    """Share of all kernel time whose family nobody could tell; ``None`` without any work."""
    total = int(families["total_ns"].sum())
    other = families["total_ns"][families["family"] == UNCLASSIFIED]
    return int(other.sum()) / total if total else None


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None
