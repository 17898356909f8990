"""The exact rank interval (Mann, Whitney, Hodges, Lehmann) for the shift between two samples."""

from functools import cache
from itertools import accumulate
from math import comb, floor, sqrt

import numpy as np
from numpy.typing import NDArray

NORMAL_95 = 1.959964
EXACT_UP_TO = 40
"""Above this many values in both samples together the normal approximation is exact enough."""


def shift_interval(
    a: NDArray[np.float64], b: NDArray[np.float64]
) -> tuple[float, float, float] | None:
    """Shift of ``b`` against ``a`` and the ends of its 95 % interval.

    The shift is the median of all differences; the interval follows from the distribution of
    ranks alone, so no wild value and no odd shape of the noise makes it too narrow. ``None``
    when the samples are too small for any 95 % interval (fewer than 4 and 4).
    """
    cut = interval_rank(a.size, b.size)
    if cut == 0:
        return None
    differences = np.sort((b[:, None] - a[None, :]).ravel())
    return (
        float(np.median(differences)),
        float(differences[cut - 1]),
        float(differences[differences.size - cut]),
    )


@cache
def interval_rank(n: int, m: int) -> int:
    """How far from either end of the sorted differences the 95 % interval lies; 0 for never."""
    if n == 0 or m == 0:
        return 0
    if n + m > EXACT_UP_TO:
        return max(0, floor(n * m / 2 - NORMAL_95 * sqrt(n * m * (n + m + 1) / 12)))
    allowed = 0.025 * comb(n + m, n)
    seen = 0
    for rank, ways in enumerate(_ways(n, m)):
        seen += ways
        if seen > allowed:
            return rank
    raise AssertionError("all ways together exceed 2.5 % of themselves")


def _ways(n: int, m: int) -> list[int]:
    """How many orders of the two samples give each value of the Mann-Whitney statistic.

    They are the coefficients of the Gaussian binomial: the product of (1 − x^(m+i)) / (1 − x^i).
    """
    counts = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for j in range(n * m, m + i - 1, -1):
            counts[j] -= counts[j - m - i]
        for j in range(i, n * m + 1):
            counts[j] += counts[j - i]
    return counts


def chance_of_more(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The one-sided chance of ranks like these if ``b`` is not larger than ``a``; ties count half.

    Exact for up to :data:`EXACT_UP_TO` values together, the normal approximation above.
    """
    n, m = a.size, b.size
    above = b[:, None] - a[None, :]
    won = float((above > 0).sum() + 0.5 * (above == 0).sum())
    if n + m > EXACT_UP_TO:
        from scipy.special import ndtr

        deviation = sqrt(n * m * (n + m + 1) / 12)
        return float(ndtr(-(won - n * m / 2 - 0.5) / deviation))
    return _at_most(n, m)[floor(n * m - won)]


@cache
def _at_most(n: int, m: int) -> tuple[float, ...]:
    """The chance that the Mann-Whitney statistic is at most each value."""
    every = comb(n + m, n)
    return tuple(float(seen) / every for seen in accumulate(_ways(n, m)))
