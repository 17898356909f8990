"""The change test: how many of the first steps are not yet like the steady state."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LEAST_STEPS = 4
WINDOWS = (1, 3)
"""Single steps, and the median of three in a row: a small shift hides in the noise of one."""
SPREADS = 2.0
"""How many times the spread of the steady state a first step must be away; see the tests."""
SMALL_SAMPLE = 3.0
"""The spread of few steps is uncertain: the distance grows by this many parts in their number."""
LEAST_SHIFT = 0.02
"""Log ratio; a first step within 2 % of the steady state changes no median."""
RECURRING = 0.10
"""A distance that this share of the later steps reaches halfway is noise, not warm-up."""


def warmup_length(times_ns: Sequence[float]) -> int:
    """How many leading steps to leave out because they are not like the steady state.

    The later half of the series is taken for the steady state, and its spread is measured by what
    single steps and medians of three steps do there. Leading steps are left out, slow or fast,
    until steps come that lie within it; but not those whose distance keeps coming back later. At
    most half of the series is left out, which means that it never settled (:func:`has_settled`);
    0 for fewer than four steps.
    """
    times = np.asarray(times_ns, dtype=np.float64).reshape(-1)
    if times.size < LEAST_STEPS or not (np.isfinite(times).all() and (times > 0).all()):
        return 0
    logs = np.log(times)
    steady = logs[logs.size // 2 :]
    distances = logs - np.median(steady)
    limits = _limits(distances[logs.size // 2 :])
    return _without_recurring(distances, _first_steady(distances, limits))


def has_settled(times_ns: Sequence[float]) -> bool:
    """Whether a loop that is still running has reached its steady state.

    Warm-up must take less than the half that it may take at most, and the later half must not
    still become faster from step to step. A wrong no costs one more step.
    """
    if len(times_ns) < LEAST_STEPS:
        return False
    steady = np.log(np.asarray(times_ns, dtype=np.float64)[len(times_ns) // 2 :])
    still_falling = bool((np.diff(steady) < 0).all()) and steady[0] - steady[-1] > LEAST_SHIFT
    return not still_falling and warmup_length(times_ns) < len(times_ns) // 2


def _limits(steady: NDArray[np.float64]) -> dict[int, float]:
    """For each window, how far the median of so many steps may lie from the steady state."""
    robust_deviation = 1.4826 * float(np.median(np.abs(steady)))
    factor = SPREADS * (1 + SMALL_SAMPLE / steady.size)
    limits = {}
    for window in WINDOWS:
        if window > 1 and window > steady.size // 2:
            continue
        spread = float(np.quantile(np.abs(_running_medians(steady, window)), 0.9))
        limits[window] = max(factor * max(spread, robust_deviation / np.sqrt(window)), LEAST_SHIFT)
    return limits


def _running_medians(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    windows = np.lib.stride_tricks.sliding_window_view(values, window)
    medians: NDArray[np.float64] = np.median(windows, axis=1)
    return medians


def _first_steady(distances: NDArray[np.float64], limits: dict[int, float]) -> int:
    """The first step at which every window lies within its limit, at most half of all."""
    half = distances.size // 2
    for at in range(half):
        if all(abs(np.median(distances[at : at + w])) <= limit for w, limit in limits.items()):
            return at
    return half


def _without_recurring(distances: NDArray[np.float64], length: int) -> int:
    """``length`` without its last steps that are no further away than later steps often are."""
    later = distances[length:]
    while length:
        last = distances[length - 1]
        recurring = np.mean(later * np.sign(last) > abs(last) / 2)
        if recurring <= RECURRING and abs(last) > LEAST_SHIFT:
            break
        length -= 1
    return length
