"""Blocks of consecutive steps measured under the same conditions, reduced to one number each.

A loaded machine makes neighbouring steps alike and single steps wild. The median of a block is
untouched by a wild step, and what neighbouring steps share is inside one number.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import WorkbenchError

Block = Sequence[float] | NDArray[np.float64]

LEAST_STEPS = 3
"""A shorter block has no median worth the name: one wild step would decide it."""


def usable(blocks: Sequence[Block]) -> list[NDArray[np.float64]]:
    """The blocks that are long enough, as arrays.

    Raises:
        WorkbenchError: a step time is zero, negative or not a number; what was not measured is left
            out of the blocks, never written as 0.
    """
    arrays = [np.asarray(block, dtype=np.float64).reshape(-1) for block in blocks]
    for values in arrays:
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise WorkbenchError(
                "a step time is zero, negative or not a number: leave out what was not measured."
            )
    return [values for values in arrays if values.size >= LEAST_STEPS]


def period(loader: Mapping[str, Any], longest: int) -> int:
    """Steps after which the pattern of step times repeats: a round of the workers, or an epoch.

    Args:
        loader: ``workers``, ``persistent_workers`` and ``batches_per_epoch``, as far as known.
        longest: Steps of the longest block.
    """
    workers = loader.get("workers") or 0
    epoch = loader.get("batches_per_epoch")
    if workers and epoch and epoch <= longest and not loader.get("persistent_workers"):
        return longest  # workers start again inside the block
    return max(workers, 1)


def evened(times: Sequence[float], period: int) -> tuple[float, ...]:
    """Each step as the mean of ``period`` consecutive ones around it.

    Several workers hand over their batches together: one step waits for all, the next ones for
    none. A median of single steps would take the ready ones for the pace of the loop; over one
    period of so many steps the mean is the pace. A period of the whole block or more gives its
    mean.
    """
    values = np.asarray(times, dtype=np.float64)
    width = min(max(period, 1), values.size)
    if width <= 1:
        return tuple(values.tolist())
    sums = np.concatenate(([0.0], np.cumsum(values)))
    first = np.clip(np.arange(values.size) - width // 2, 0, values.size - width)
    return tuple(((sums[first + width] - sums[first]) / width).tolist())


def split_to(blocks: Sequence[NDArray[np.float64]], least: int) -> list[NDArray[np.float64]]:
    """The blocks cut into equal parts to be at least ``least``, if they are long enough."""
    if not blocks or len(blocks) >= least:
        return list(blocks)
    parts = -(-least // len(blocks))
    if min(block.size for block in blocks) < parts * LEAST_STEPS:
        return list(blocks)
    return [part for block in blocks for part in np.array_split(block, parts)]


def log_medians(blocks: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Natural logarithm of each block's median, so that differences are ratios."""
    return np.log(np.array([np.median(block) for block in blocks], dtype=np.float64))


def log_means(blocks: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Natural logarithm of each block's mean: the pace, whatever single steps do."""
    return np.log(np.array([np.mean(block) for block in blocks], dtype=np.float64))


def half_difference(medians: NDArray[np.float64]) -> float:
    """Later half minus earlier half; the middle block of an odd number is left out."""
    half = medians.size // 2
    return float(np.median(medians[medians.size - half :]) - np.median(medians[:half]))
