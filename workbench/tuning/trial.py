"""What a fair measurement of several settings hands back: numbers and words only."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.settings import Settings
from workbench.statistics.change import Change, compare_steps

Outcome = Literal["measured", "out_of_memory", "refused", "error", "timed_out", "not_measured"]
"""``not_measured``: the measurement ended before its turn came."""
Ended = Literal["finished", "interrupted", "time_limit"]


@dataclass(frozen=True, kw_only=True)
class FairBlock:
    """Consecutive steps of one setting, from the same start as every other block.

    ``None`` means not measured. Of ``losses`` all steps of the block are kept, the ones that were
    left out for warm-up as well: their batches are the same in every block.
    """

    position: int
    """Place in the order of all blocks."""
    step_ns: tuple[int, ...]
    """Steps that count, completion to completion."""
    input_ns: tuple[int, ...]
    """How long each of them waited for its batch."""
    samples: tuple[int | None, ...]
    """Samples in each of them."""
    left_out_ns: tuple[int, ...]
    """The steps before them: lead and warm-up."""
    losses: tuple[float, ...] = ()
    sample_hashes: tuple[int, ...] = ()
    """Of the samples of the first batches, in the order in which they came."""
    peak_rss_bytes: int | None = None
    workers_bytes: int | None = None
    """Memory of the loader's processes that they share with nobody, or their part of it."""
    device_peak_bytes: int | None = None
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """Load, clock, temperature and other processes meanwhile: see ``conditions``."""

    @property
    def sample_ns(self) -> tuple[float, ...] | None:
        """Time of a sample in each step; ``None`` where samples cannot be counted."""
        counted = [n for n in self.samples if n]
        if len(counted) < len(self.step_ns):
            return None
        return tuple(ns / n for ns, n in zip(self.step_ns, counted, strict=True))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One setting of a fair measurement: what came of it, and its blocks so far."""

    settings: Settings
    outcome: Outcome
    reason: str | None
    """Why it was not measured, in words for the user."""
    blocks: tuple[FairBlock, ...]
    warmup_ns: tuple[int, ...]
    """The very first steps, until they were steady; compilation is in them."""
    effective: Mapping[str, Any]
    """What was in force, also where no setting asked for it."""
    compilation: Mapping[str, Any] | None
    """Counters of torch.compile in all blocks; ``None`` where nothing was compiled."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it ran to its end and has at least one block."""
        return self.outcome == "measured" and bool(self.blocks)

    @property
    def step_ns(self) -> float | None:
        """Median step of all blocks."""
        steps = [ns for block in self.blocks for ns in block.step_ns]
        return float(statistics.median(steps)) if steps else None

    @property
    def sample_ns(self) -> float | None:
        """Median time of a sample; ``None`` where samples cannot be counted."""
        each = [block.sample_ns for block in self.blocks]
        times = [ns for block in each for ns in block or ()]
        return float(statistics.median(times)) if times and None not in each else None

    @property
    def samples_per_step(self) -> float | None:
        """Mean samples of the steps that count."""
        counts = [n for block in self.blocks for n in block.samples]
        known = [n for n in counts if n is not None]
        return statistics.fmean(known) if known and len(known) == len(counts) else None

    @property
    def compile_s(self) -> float | None:
        """What the first steps took beyond steady ones, where something was compiled."""
        steady = self.step_ns
        if steady is None or self.compilation is None:
            return None
        return max(0.0, sum(self.warmup_ns) - len(self.warmup_ns) * steady) / 1e9

    @property
    def peak_rss_bytes(self) -> int | None:
        """Median over the blocks of the most memory that this process held."""
        return _middle([block.peak_rss_bytes for block in self.blocks])

    @property
    def workers_bytes(self) -> int | None:
        """Median over the blocks of the memory of the loader's processes."""
        return _middle([block.workers_bytes for block in self.blocks])

    @property
    def device_peak_bytes(self) -> int | None:
        """Most memory of the device that tensors took in any block."""
        known = [b.device_peak_bytes for b in self.blocks if b.device_peak_bytes is not None]
        return max(known, default=None)


@dataclass(frozen=True, kw_only=True)
class FairRuns:
    """Several settings measured in interleaved blocks; ``trials`` are in the order asked for."""

    trials: tuple[Trial, ...]
    ended: Ended
    elapsed_s: float
    notes: tuple[str, ...] = ()
    """What was decided for the user and should be said."""

    def per(self, first: int, second: int) -> Literal["step", "sample"]:
        """What is compared of two trials: a sample where their steps hold different numbers."""
        a, b = (self.trials[n].samples_per_step for n in (first, second))
        return "sample" if a and b and a != b else "step"

    def blocks(self, number: int, per: Literal["step", "sample"]) -> list[tuple[float, ...]]:
        """Times of a trial, block by block, in nanoseconds of a step or of a sample."""
        blocks = self.trials[number].blocks
        if per == "step":
            return [tuple(map(float, block.step_ns)) for block in blocks]
        return [times for block in blocks if (times := block.sample_ns) is not None]

    def change(self, first: int = 0, second: int = 1) -> Change:
        """Whether the second trial is faster than the first; compared by sample where needed."""
        per = self.per(first, second)
        sides = [self.blocks(number, per) for number in (first, second)]
        return compare_steps(*sides, interleaved=True)

    def break_even_steps(self, first: int = 0, second: int = 1) -> int | None:
        """Steps after which the second trial's compilation has paid; ``None`` if never, or none."""
        a, b = self.trials[first], self.trials[second]
        if b.compile_s is None or a.step_ns is None or b.step_ns is None:
            return None
        more = b.compile_s - (a.compile_s or 0.0)
        saved = _saved_ns(a, b, self.per(first, second))
        return None if saved <= 0 else max(0, round(more * 1e9 / saved))


def _saved_ns(a: Trial, b: Trial, per: str) -> float:
    """What a step of b saves against a; of unequal steps, against as many samples of a."""
    if per == "step" or a.sample_ns is None or b.sample_ns is None:
        return (a.step_ns or 0.0) - (b.step_ns or 0.0)
    return (a.sample_ns - b.sample_ns) * (b.samples_per_step or 0.0)


def _middle(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return int(statistics.median(known)) if known else None
