"""What blocks of one way of loading say together: its pace, start-up and what repeats differ by."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from workbench.tuning.trial import Outcome

LEAST_NOISE = 0.02
"""No machine repeats a loader better (own choice)."""
MOST_NOISE = 0.25
"""A tie is no wider, however noisy the machine (own choice)."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One way of loading; ``block_ns`` is the median step of each block, in nanoseconds."""

    block_ns: tuple[float, ...] = ()
    start_ns: tuple[float, ...] = ()
    """What the first step of each block took beyond the others: starting the loader."""
    waits: tuple[float, ...] = ()
    """Share of the steps of each block that waited for a batch."""
    memory_bytes: int | None = None
    """Of this process and its loader's processes."""
    outcome: Outcome = "measured"
    reason: str | None = None
    whole_epochs: bool = False
    """Whether blocks span epochs, so that starting again is part of their steps."""

    @property
    def step_ns(self) -> float | None:
        """Its steady step: the middle of its blocks."""
        return _geometric(self.block_ns) if self.block_ns else None

    @property
    def wait(self) -> float | None:
        """Share of its steps that waited for a batch; ``None``: not seen."""
        return sum(self.waits) / len(self.waits) if self.waits else None

    def amortised_ns(self, epoch: int | None, each_epoch_ns: float) -> float | None:
        """The step with what every epoch costs besides, spread over its batches."""
        if self.step_ns is None:
            return None
        if not epoch or self.whole_epochs:
            return self.step_ns
        return self.step_ns + max(each_epoch_ns, 0.0) / epoch

    @property
    def startup_ns(self) -> float:
        """Starting the loader, workers included: the shortest that was seen."""
        return max(0.0, min(self.start_ns, default=0.0))


def noise_of(all_measured: Iterable[Measured], *, at_least: float = LEAST_NOISE) -> float:
    """What two blocks of the same loader differ by on this machine now (A/A), as a share."""
    deviation, freedom = _pooled(all_measured)
    if not freedom:
        return at_least
    return min(max(at_least, math.expm1(math.sqrt(2) * deviation)), MOST_NOISE)


def intervals(all_measured: Iterable[Measured]) -> tuple[float, int]:
    """Deviation of one block as a logarithm, from all loaders together, and its freedom."""
    return _pooled(all_measured)


def factor(deviation: float, freedom: int, blocks: float) -> float | None:
    """A median of so many blocks lies within this factor at 95 %; ``None``: nothing repeated."""
    from scipy.special import stdtrit

    if not freedom or not blocks:
        return None
    return math.exp(float(stdtrit(freedom, 0.975)) * deviation / math.sqrt(blocks))


def _pooled(all_measured: Iterable[Measured]) -> tuple[float, int]:
    squares, freedom = 0.0, 0
    for each in all_measured:
        logs = [math.log(ns) for ns in each.block_ns]
        middle = sum(logs) / len(logs) if logs else 0.0
        squares += sum((value - middle) ** 2 for value in logs)
        freedom += max(len(logs) - 1, 0)
    return (math.sqrt(squares / freedom) if freedom else 0.0), freedom


def _geometric(values: tuple[float, ...]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
