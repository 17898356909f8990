"""Whether a series of step times grows, and whether its slow steps come at a fixed period."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_STEPS = 20
"""Fewer steps are no series."""
CERTAIN = 4.0
"""Standard deviations of Kendall's statistic: once in 30 000 series that only scatter."""
EACH_HALF = 1.5
"""The same for either half alone: a single jump is no trend."""
SPIKE = 1.5
"""A spike takes so many times the median (own choice)."""
LEAST_SPIKES = 4
HALF = 0.5
"""Slow steps that belong together take at least half as much more than usual (own choice)."""
REGULAR = 0.8
"""So many of the distances between spikes must be the same (own choice)."""
Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Drift:
    """A trend of a series."""

    slope_ns: float
    """Nanoseconds by which a step takes longer than the one before (Theil-Sen)."""
    growth: float
    """The same over the whole series, as a share of its first steps."""


@dataclass(frozen=True, kw_only=True)
class Period:
    """Slow steps that come at a fixed distance."""

    steps: int
    spikes: int
    excess_ns: float
    """What they take beyond a median step, spread over all steps."""


def drift(times_ns: Sequence[float]) -> Drift | None:
    """The trend of a series that certainly grows, in both of its halves; else ``None``."""
    times = np.asarray(times_ns, np.float64)
    half = len(times) // 2
    if len(times) < LEAST_STEPS or _kendall(times) < CERTAIN:
        return None
    if min(_kendall(times[:half]), _kendall(times[half:])) < EACH_HALF:
        return None
    first, second = np.triu_indices(len(times), 1)
    slope = float(np.median((times[second] - times[first]) / (second - first)))
    start = float(np.median(times - slope * np.arange(len(times))))
    if slope <= 0 or start <= 0:
        return None
    return Drift(slope_ns=slope, growth=slope * (len(times) - 1) / start)


def period(times_ns: Sequence[float], blocks: Sequence[int] = ()) -> Period | None:
    """The distance at which slow steps come, if nearly all of them keep to it; else ``None``.

    Args:
        times_ns: Step times.
        blocks: Steps of each block that was measured without a pause, so that between the last
            slow step of one and the first of the next the distance says nothing.
    """
    times = np.asarray(times_ns, np.float64)
    if len(times) < LEAST_STEPS:
        return None
    median = float(np.median(times))
    # What is far smaller than the slow steps is a busy machine's doing.
    large = median + HALF * (float(np.sort(times)[-LEAST_SPIKES]) - median)
    spikes = np.flatnonzero(times > max(SPIKE * median, large))
    if len(spikes) < LEAST_SPIKES:
        return None
    block = np.searchsorted(np.cumsum(blocks), spikes, "right")
    between = np.diff(spikes)[np.diff(block) == 0]
    if len(between) < LEAST_SPIKES - 2:
        return None
    distance, count = np.unique(between, return_counts=True)
    steps = int(distance[np.argmax(count)])
    if steps < 2 or count.max() < REGULAR * len(between):
        return None
    excess = float((times[spikes] - median).sum()) / len(times)
    return Period(steps=steps, spikes=len(spikes), excess_ns=excess)


def _kendall(times: Values) -> float:
    """Kendall's statistic of a series against its order, in standard deviations."""
    count = len(times)
    if count < 3:
        return 0.0
    first, second = np.triu_indices(count, 1)
    score = float(np.sign(times[second] - times[first]).sum())
    return score / float(np.sqrt(count * (count - 1) * (2 * count + 5) / 18))
