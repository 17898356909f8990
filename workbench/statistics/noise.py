"""The noise floor: how far two measurements of the very same thing differ on this machine."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.statistics.blocks import Block, half_difference, log_medians, usable


def noise_floor(blocks: Sequence[Block]) -> float | None:
    """The relative difference between two halves of the same measurement (A/A).

    ``blocks`` are consecutive series of step times under the same conditions, in order of time.
    Of two blocks it is their difference; of more the larger of the difference between the
    earlier and the later half, and the typical difference of two halves dealt at random. Blocks
    of fewer than three steps are left out. ``None`` with fewer than two blocks: nothing was
    repeated, so nothing is known.
    """
    whole = usable(blocks)
    if len(whole) < 2:
        return None
    medians = log_medians(whole)
    return float(np.expm1(max(abs(half_difference(medians)), typical_difference(medians))))


def typical_difference(medians: NDArray[np.float64]) -> float:
    """Median difference of two random halves of ``medians``, from the differences of all pairs.

    For independent normal blocks of deviation σ, pairs differ by 0.954 σ in the median and
    halves of n blocks by a factor of √(2/n) less. The median keeps one wild block from deciding.
    """
    count = medians.size
    first, second = np.triu_indices(count, 1)
    return float(np.median(np.abs(medians[first] - medians[second])) * np.sqrt(2 / count))
