"""Seeded noise of quiet and loaded machines: relative step times around 1, no effect in them."""

import numpy as np
from numpy.typing import NDArray

NOISES = ("quiet", "wide", "heavy_tail", "spikes", "bimodal", "neighbours_alike", "regimes")


def steps(noise: str, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """A stationary series of step times."""
    jitter = 1 + 0.02 * rng.standard_normal(count)
    match noise:
        case "quiet":
            return jitter
        case "wide":
            return np.exp(0.15 * rng.standard_normal(count))
        case "heavy_tail":
            return np.exp(0.03 * np.clip(rng.standard_t(2, count), -60, 60))
        case "spikes":
            return jitter * np.where(rng.random(count) < 0.1, 1 + rng.pareto(1.5, count), 1)
        case "bimodal":
            return jitter * np.where(rng.random(count) < 0.4, 1.4, 1)
        case "neighbours_alike":
            return np.exp(0.05 * _autoregressive(rng, count, 0.7))
        case "regimes":
            return jitter * np.where(_switching(rng, count, 0.1), 1.35, 1)
    raise AssertionError(noise)


def _autoregressive(rng: np.random.Generator, count: int, keep: float) -> NDArray[np.float64]:
    values = rng.standard_normal(count)
    for at in range(1, count):
        values[at] = keep * values[at - 1] + np.sqrt(1 - keep**2) * values[at]
    return values


def _switching(rng: np.random.Generator, count: int, rate: float) -> NDArray[np.bool_]:
    start = int(rng.random() < 0.5)
    return (np.cumsum(rng.random(count) < rate) + start) % 2 == 1
