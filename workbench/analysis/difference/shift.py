"""Whether nearly every kernel changed alike: then look at the device before the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

LEAST_SHIFT = 0.03
"""Three times what clocks drift by between two recordings."""
SHARED_BY = 0.8
"""Share of the kernel time that must have moved in the same direction by about as much."""
LEAST_KERNELS = 5


def common_shift(kernels: pd.DataFrame) -> float | None:
    """By what share nearly every kernel takes longer (or, negative, shorter) a call.

    Args:
        kernels: The table of a comparison; kernels that are called as often on both sides count.

    Returns:
        ``None`` when there is no such shift: too few kernels, too small, or not shared by
        ``SHARED_BY`` of the kernel time within half of the shift.
    """
    both = kernels["median_first_ns"].gt(0) & kernels["median_second_ns"].gt(0)
    alike = kernels[both & (kernels["calls_first"] == kernels["calls_second"])]
    if len(alike) < LEAST_KERNELS:
        return None
    ratio = np.log(alike["median_second_ns"].to_numpy() / alike["median_first_ns"].to_numpy())
    weight = alike["first_ns"].to_numpy(np.float64)
    order = np.argsort(ratio)
    held = np.cumsum(weight[order])
    if not held[-1]:
        return None
    middle = float(ratio[order][np.searchsorted(held, held[-1] / 2)])
    if abs(np.expm1(middle)) < LEAST_SHIFT:
        return None
    shared = weight[np.abs(ratio - middle) <= abs(middle) / 2].sum() / weight.sum()
    return float(np.expm1(middle)) if shared >= SHARED_BY else None
