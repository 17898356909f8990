"""Step times under the profiler of two Runs: never real ones, and only said to be such."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.figures.comparison import interval_text
from workbench.units import count_text, time_text

if TYPE_CHECKING:
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run


@dataclass(frozen=True, kw_only=True)
class ProfiledSteps:
    """Step times that the traces show, warm-up left out."""

    first_ns: tuple[float, ...]
    second_ns: tuple[float, ...]
    ratio: float
    """Mean of the second over mean of the first."""
    low: float | None
    """Ends of the 95 % interval of ``ratio``; ``None`` where a side has one step only."""
    high: float | None
    beyond: bool
    """The difference is more than the steps of one trace differ by."""
    per: str

    def sentence(self, first: str, second: str) -> str:
        """What the traces show, and that it is no real step time."""
        means = [sum(side) / len(side) for side in (self.first_ns, self.second_ns)]
        counts = [count_text(len(side)) for side in (self.first_ns, self.second_ns)]
        took = f"takes {time_text(means[1])}, one of {first} {time_text(means[0])}"
        told = f"step times under the profiler: a {self.per} of {second} {took} "
        told += f"(means of {counts[0]} and {counts[1]})"
        if self.low is None or self.high is None:
            return f"{told[0].upper()}{told[1:]}."
        told += f", {interval_text(self.ratio, self.low, self.high)} time"
        told += "." if self.beyond else ", which is within what its steps differ by."
        return f"{told[0].upper()}{told[1:]}"


def profiled_steps(
    first: Run, second: Run, *, per: tuple[float, float] | None = None
) -> ProfiledSteps | None:
    """Compare step times under the profiler; ``None`` where a side has none."""
    import numpy as np

    from workbench.statistics.spread import compare_rows

    sides = [np.asarray(_times(run.ranks[0]), np.float64) for run in (first, second)]
    if not all(len(side) and side.mean() > 0 for side in sides):
        return None
    if per is not None:
        sides = [side / samples for side, samples in zip(sides, per, strict=True)]
    found = compare_rows(sides[0][None, :], sides[1][None, :])
    mean = float(sides[0].mean())
    ratio, margin = float(sides[1].mean()) / mean, float(found.margin[0]) / mean
    known = not np.isnan(margin)
    return ProfiledSteps(
        first_ns=tuple(sides[0].tolist()),
        second_ns=tuple(sides[1].tolist()),
        ratio=ratio,
        low=max(ratio - margin, 0.0) if known else None,
        high=ratio + margin if known else None,
        beyond=bool(found.beyond[0]),
        per="step" if per is None else "sample",
    )


def _times(rank: RankAnalysis) -> list[int]:
    steps = rank.steps
    if steps is None or rank.voids("step_time"):
        return []
    return [int(ns) for ns in steps.time_ns[steps.warmup :]]
