"""Sides of a gate built by hand, with noise of known size."""

import numpy as np

from workbench.gate.sample import Sample, Side

MS = 1e6


def times(
    rng: np.random.Generator, middle_ms: float, noise: float, *, blocks: int = 8, steps: int = 10
) -> tuple[tuple[float, ...], ...]:
    """Blocks of step times in nanoseconds, scattering by ``noise`` each."""
    values = middle_ms * MS * np.exp(noise * rng.standard_normal((blocks, steps)))
    return tuple(tuple(map(float, block)) for block in values)


def side(name: str, turns: str | None = None, **samples: Sample) -> Side:
    """A side with the samples of the metrics named."""
    return Side(name=name, samples=samples, turns=turns)


def timed(
    rng: np.random.Generator, middle_ms: float, noise: float = 0.02, *, turns: str | None = None
) -> Side:
    """A side with nothing but step times."""
    return side("run", turns, step_time=Sample(blocks=times(rng, middle_ms, noise)))
