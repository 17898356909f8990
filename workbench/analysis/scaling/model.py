"""A model of a step: compute, collectives on a link, and waiting for the last of many ranks.

``step(n) = compute + exposed + wait``, each fitted to the world sizes that were measured:

- compute: a part for every step and one for every sample of a rank;
- exposed: the collectives take what the fitted link says; compute hides them as far as there is
  room beside it, but never the share that even the best measured size left exposed (a last bucket);
- wait: ranks differ by chance, and the latest of n is the expected maximum of n normal deviations.

It knows one link: a job that leaves a machine or a switch meets another one. Ranks that share
processors slow each other down, which no part of it knows; leaving a measured size out and
predicting it shows such things as error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from workbench.analysis.scaling.points import Point, Share, share_of
from workbench.statistics.link import Link, Timed, fit_link

if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["weak", "strong"]


@dataclass(frozen=True, kw_only=True)
class Model:
    """A fitted model of scaling."""

    points: tuple[Point, ...]
    kind: Kind
    """weak: every rank keeps its samples; strong: all ranks share the same ones."""
    link: Link | None
    """``None`` where nothing was sent."""
    fixed_ns: float
    """Compute of every step."""
    sample_ns: float
    """Compute of every sample of a rank."""
    room: float
    """Communication that runs beside compute, over compute."""
    never_hidden: float
    """Share of the communication that even the best measured size left exposed."""
    spread_ns: float
    """Standard deviation of a rank's step by chance."""
    sent: tuple[Timed, ...]
    """The collectives of a step."""
    error: float | None
    """Largest relative error of a measured size predicted from the others that are smaller;
    ``None`` with fewer than three sizes."""

    def samples(self, world_size: int) -> float:
        """Of a rank in a step."""
        last = self.points[-1]
        if self.kind == "weak":
            return last.samples_per_rank
        return last.samples_per_step / world_size

    def compute_ns(self, world_size: int) -> float:
        """Of a rank in a step."""
        return self.fixed_ns + self.sample_ns * self.samples(world_size)

    def transfer_ns(self, world_size: int) -> float:
        """Of all collectives of a step, hidden or not."""
        if self.link is None or world_size < 2:
            return 0.0
        link = self.link
        return sum(link.time_ns(t.kind, world_size, t.bytes, t.calls) for t in self.sent)

    def exposed_ns(self, world_size: int) -> float:
        """The part of it that nothing hides."""
        moved = self.transfer_ns(world_size)
        return max(moved - self.room * self.compute_ns(world_size), self.never_hidden * moved)

    def wait_ns(self, world_size: int) -> float:
        """Waiting for the last rank."""
        return self.spread_ns * expected_maximum(world_size)

    def step_ns(self, world_size: int) -> float:
        """Of the whole job."""
        return self.compute_ns(world_size) + self.exposed_ns(world_size) + self.wait_ns(world_size)

    def predict(self, world_size: int) -> Share:
        """What the model says of a size; its error grows with every doubling past the largest."""
        beyond = math.log2(max(world_size / self.points[-1].world_size, 1))
        error = None if self.error is None else self.error * max(beyond, 1.0)
        return share_of(
            world_size=world_size,
            step_ns=self.step_ns(world_size),
            exposed_ns=self.exposed_ns(world_size),
            wait_ns=self.wait_ns(world_size),
            ideal_ns=self.ideal_ns(self.samples(world_size)),
            predicted=True,
            error=error,
        )

    def measured(self, point: Point) -> Share:
        """The same of a size that was measured."""
        return share_of(
            world_size=point.world_size,
            step_ns=point.step_ns,
            exposed_ns=point.exposed_ns,
            wait_ns=point.wait_ns,
            ideal_ns=self.ideal_ns(point.samples_per_rank),
        )

    def ideal_ns(self, samples: float) -> float:
        """What one rank alone takes for so many samples: measured where it was, else modelled.

        Of strong scaling too: an ideal job does a sample as fast as one rank does.
        """
        first = self.points[0]
        if first.world_size == 1:
            return first.step_ns / first.samples_per_rank * samples
        whole = self.samples(1)
        return (self.fixed_ns + self.sample_ns * whole) / whole * samples


def fit_model(points: Sequence[Point], kind: Kind | None = None) -> Model | None:
    """Fit the model; ``None`` without two world sizes.

    Args:
        points: One a world size.
        kind: How samples follow the ranks; left out, as the points show it.
    """
    ordered = sorted(points, key=lambda point: point.world_size)
    if len({point.world_size for point in ordered}) < 2:
        return None
    kind = kind or _kind_of(ordered)
    return _fitted(ordered, kind, _error(ordered, kind))


@lru_cache(maxsize=256)
def expected_maximum(count: int) -> float:
    """Of so many standard normal deviations (0, 0.564, 0.846, 1.029, …)."""
    if count < 2:
        return 0.0
    import numpy as np
    from scipy.special import ndtr

    x = np.linspace(0, 8, 2001)
    inside = (1 - ndtr(x) ** count) - ndtr(-x) ** count
    return float((inside.sum() - (inside[0] + inside[-1]) / 2) * (x[1] - x[0]))


def _kind_of(points: Sequence[Point]) -> Kind:
    """Strong where the samples of a step stay closer together than those of a rank."""

    def spread(values: list[float]) -> float:
        return max(values) / min(values) if min(values) > 0 else math.inf

    whole = spread([point.samples_per_step for point in points])
    each = spread([point.samples_per_rank for point in points])
    return "strong" if whole < each else "weak"


def _fitted(points: Sequence[Point], kind: Kind, error: float | None) -> Model:
    fixed, sample = _compute(points)
    several = [point for point in points if point.world_size > 1]
    link = fit_link([each for point in several for each in point.volumes])
    talking = [point for point in several if point.transfer_ns > 0]
    never = min((p.exposed_ns / p.transfer_ns for p in talking), default=1.0)
    waited = [p.wait_ns / expected_maximum(p.world_size) for p in several]
    return Model(
        points=tuple(points),
        kind=kind,
        link=link,
        fixed_ns=fixed,
        sample_ns=sample,
        room=_room(talking),
        never_hidden=min(max(never, 0.0), 1.0),
        spread_ns=sum(waited) / len(waited) if waited else 0.0,
        sent=points[-1].volumes,
        error=error,
    )


def _compute(points: Sequence[Point]) -> tuple[float, float]:
    """Per step and per sample; where ranks always have as many samples, all of it is per sample."""
    import numpy as np
    from scipy.optimize import nnls

    samples = np.array([point.samples_per_rank for point in points])
    times = np.array([point.compute_ns for point in points])
    if np.ptp(samples) <= 0.05 * samples.max():
        return 0.0, float((times / samples).mean())
    columns = np.column_stack((1 / times, samples / times))
    size = np.linalg.norm(columns, axis=0)
    fixed, sample = nnls(columns / size, np.ones(len(times)))[0] / size
    return float(fixed), float(sample)


def _room(talking: Sequence[Point]) -> float:
    """Room beside compute, over compute: as it was measured, else at least what was hidden."""
    known = [
        p.overlap_ns / p.compute_ns for p in talking if p.overlap_ns is not None and p.compute_ns
    ]
    if known:
        return sum(known) / len(known)
    hidden = [(p.transfer_ns - p.exposed_ns) / p.compute_ns for p in talking if p.compute_ns]
    return max([0.0, *hidden])


def _error(points: Sequence[Point], kind: Kind) -> float | None:
    """Predict each size from the smaller ones, where those are two and one of them communicates."""
    errors = []
    for place in range(2, len(points)):
        known, asked = points[:place], points[place]
        if len({point.world_size for point in known}) < 2:
            continue
        said = _fitted(known, kind, None).step_ns(asked.world_size)
        errors.append(abs(said - asked.step_ns) / asked.step_ns)
    return max(errors) if errors else None
