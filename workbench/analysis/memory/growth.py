"""Memory step by step, whether it grows, and what does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.memory.allocations import AFTER, Allocations, Curve, StepRanges

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

LEAST_STEPS = 5
"""Own choice: five that rise one after the other are chance once in 120."""
CERTAIN = 0.01
"""Largest probability of chance (Kendall's test, one-sided), of the worst and of the median."""
SAMPLES = 101
"""Moments of a step at which its live bytes are looked at for their median."""
STEP_COLUMNS = (
    *("step", "peak_bytes", "median_bytes", "end_bytes", "allocations", "allocated_bytes"),
)


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The trend of live memory over steps."""

    steps: int
    bytes_per_step: float
    """Slope of the bytes live at the ends of steps (Theil-Sen)."""
    worst_bytes_per_step: float
    """Slope of the peaks of steps."""
    median_bytes_per_step: float
    """Slope of the medians of steps."""
    chance: float
    """Probability of such a rise by chance, the larger of peaks and medians."""
    grows: bool
    """Whether both certainly rise."""


def step_table(
    curve: Curve, allocations: Allocations, device: int, steps: StepRanges
) -> pd.DataFrame:
    """One row a step: live bytes at most, in the middle and at its end; what it allocates."""
    import pandas as pd

    mine = allocations.of(device)
    begun, size = allocations.start[mine], allocations.bytes[mine]
    rows = []
    for number, low, high in zip(
        steps.numbers, steps.start.tolist(), steps.end.tolist(), strict=True
    ):
        first, last = np.searchsorted(curve.ts, (low, high))
        inside = curve.value[first:last]
        known = np.append(inside, curve.at(np.array([low])))
        at = np.linspace(low, max(high - 1, low), SAMPLES).astype(np.int64)
        here = (begun >= low) & (begun < high)
        count = (int(here.sum()), int(size[here].sum())) if len(mine) else (None, None)
        ends = int(curve.at(np.array([high - 1]))[0])
        rows.append((number, int(known.max()), float(np.median(curve.at(at))), ends, *count))
    table = pd.DataFrame(rows, columns=list(STEP_COLUMNS))
    return table.astype({"allocations": "Int64", "allocated_bytes": "Int64"})


def growth(table: pd.DataFrame) -> Growth | None:
    """Whether memory grows from step to step; ``None`` for too few steps."""
    if len(table) < LEAST_STEPS:
        return None
    worst, median = (table[name].to_numpy(float) for name in ("peak_bytes", "median_bytes"))
    slopes = _slope(worst), _slope(median)
    chance = max(_chance(worst), _chance(median))
    return Growth(
        steps=len(table),
        bytes_per_step=_slope(table["end_bytes"].to_numpy(float)),
        worst_bytes_per_step=slopes[0],
        median_bytes_per_step=slopes[1],
        chance=chance,
        grows=bool(min(slopes) > 0 and chance < CERTAIN),
    )


def survivors(
    allocations: Allocations, device: int, steps: StepRanges
) -> tuple[NDArray[np.intp], int]:
    """What steps took and nobody gave back, the last step left out; and of how many steps."""
    start = steps.start
    if len(start) < 2:
        return np.empty(0, np.intp), 0
    begun = allocations.start
    kept = (allocations.device == device) & (allocations.end == AFTER)
    kept &= (begun >= start[0]) & (begun < start[-1])
    return np.flatnonzero(kept), len(start) - 1


def _slope(values: NDArray[np.float64]) -> float:
    first, second = np.triu_indices(len(values), 1)
    return float(np.median((values[second] - values[first]) / (second - first)))


def _chance(values: NDArray[np.float64]) -> float:
    from scipy.stats import kendalltau

    if np.ptp(values) == 0:
        return 1.0
    found = kendalltau(np.arange(len(values)), values, alternative="greater")
    return float(found.pvalue)
