"""What a fair measurement of several settings hands back: numbers and words only."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.settings import Settings
from workbench.statistics.blocks import evened, period
from workbench.statistics.change import Change, compare_steps

Outcome = Literal["measured", "out_of_memory", "refused", "error", "timed_out", "not_measured"]
"""``not_measured``: the measurement ended before its turn came."""
Ended = Literal["finished", "interrupted", "time_limit"]
Per = Literal["step", "sample"]
Times = tuple[float, ...]
LEAST_LEFT = 0.05
"""What is left at least of a step without its waits: clocks of the system are not exact."""


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
    delay_ns: tuple[int, ...] | None = None
    """How long the training thread waited for a processor in each of them; see ``delays``."""
    delay_share: float | None = None
    """The part of these waits that was other programs' doing."""
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
    def undisturbed_ns(self) -> tuple[float, ...] | None:
        """The steps without their waits for processors that others held; ``None``: not known."""
        if self.delay_ns is None or self.delay_share is None:
            return None
        pairs = zip(self.step_ns, self.delay_ns, strict=True)
        return tuple(max(ns - self.delay_share * wait, LEAST_LEFT * ns) for ns, wait in pairs)

    def per_sample(self, times: Sequence[float]) -> tuple[float, ...] | None:
        """These times of its steps, of a sample each; ``None`` where samples are not counted."""
        counted = [n for n in self.samples if n]
        if len(counted) < len(times):
            return None
        return tuple(ns / n for ns, n in zip(times, counted, strict=True))


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
    def period(self) -> int:
        """Steps after which the pattern of step times repeats: a round of the workers, an epoch."""
        longest = max((len(block.step_ns) for block in self.blocks), default=0)
        return period(self.effective, longest)

    def times(
        self, per: Per = "step", *, undisturbed: bool = False, period: int | None = None
    ) -> list[Times]:
        """Block by block the pace of each step, in nanoseconds of a step or of a sample.

        Args:
            per: A step, or a sample.
            undisturbed: Leave out waits for processors that others held.
            period: Steps over which each is evened; the trial's own when left out.
        """
        found: list[Times] = []
        for block in self.blocks:
            times = block.undisturbed_ns if undisturbed else tuple(map(float, block.step_ns))
            if times is not None and per == "sample":
                times = block.per_sample(times)
            if times is not None:
                found.append(evened(times, self.period if period is None else period))
        return found

    @property
    def step_ns(self) -> float | None:
        """Median step of all blocks."""
        steps = [ns for block in self.times() for ns in block]
        return float(statistics.median(steps)) if steps else None

    @property
    def sample_ns(self) -> float | None:
        """Median time of a sample; ``None`` where samples cannot be counted."""
        blocks = self.times("sample")
        if len(blocks) < len(self.blocks) or not blocks:
            return None
        return float(statistics.median(ns for block in blocks for ns in block))

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

    def per(self, first: int, second: int) -> Per:
        """What is compared of two trials: a sample where their steps hold different numbers."""
        a, b = (self.trials[n].samples_per_step for n in (first, second))
        return "sample" if a and b and a != b else "step"

    def undisturbed(self, *numbers: int) -> bool:
        """Whether the waits for processors that others held are known for all these trials."""
        each = [block for number in numbers for block in self.trials[number].blocks]
        return bool(each) and all(block.undisturbed_ns is not None for block in each)

    def change(
        self, first: int = 0, second: int = 1, *, again: int | None = None, whole: bool = False
    ) -> Change:
        """Whether the second trial is faster than the first; compared by sample where needed.

        Waits for processors that other programs held are left out where they are known.

        Args:
            first: Number of the trial that is compared with.
            second: Number of the trial in question.
            again: A second trial of the first one's setting, whose difference is the noise floor.
            whole: Compare whole step times, whatever the machine did meanwhile.
        """
        per, floor = self.per(first, second), () if again is None else (again,)
        clean = not whole and self.undisturbed(first, second, *floor)
        trials = [self.trials[n] for n in (first, second, *floor)]
        wide = max(trial.period for trial in trials)  # means against means, never against medians
        sides = [trial.times(per, undisturbed=clean, period=wide) for trial in trials]
        return compare_steps(*sides[:2], again=sides[2] if floor else (), interleaved=True)

    def break_even_steps(self, first: int = 0, second: int = 1) -> int | None:
        """Steps after which the second trial's compilation has paid; ``None`` if never, or none."""
        a, b = self.trials[first], self.trials[second]
        if b.compile_s is None or a.step_ns is None or b.step_ns is None:
            return None
        more = b.compile_s - (a.compile_s or 0.0)
        saved = _saved_ns(a, b, self.per(first, second))
        return None if saved <= 0 else max(0, round(more * 1e9 / saved))


def losses_after_as_many(a: Trial, b: Trial) -> tuple[float | None, float | None]:
    """The loss of each after as many samples, the most that both have seen; ``None``: not seen.

    Leads and batches differ in length, so the last steps of two blocks stand on other samples.
    """
    sides = [(trial, next((x for x in trial.blocks if x.losses), None)) for trial in (a, b)]
    seen = [
        None if block is None else len(block.losses) * (trial.samples_per_step or 1)
        for trial, block in sides
    ]
    common = min((count for count in seen if count is not None), default=0)
    found = []
    for trial, block in sides:
        steps = int(common / (trial.samples_per_step or 1))
        found.append(block.losses[steps - 1] if block is not None and steps else None)
    return found[0], found[1]


def _saved_ns(a: Trial, b: Trial, per: str) -> float:
    """What a step of b saves against a; of unequal steps, against as many samples of a."""
    if per == "step" or a.sample_ns is None or b.sample_ns is None:
        return (a.step_ns or 0.0) - (b.step_ns or 0.0)
    return (a.sample_ns - b.sample_ns) * (b.samples_per_step or 0.0)


def _middle(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return int(statistics.median(known)) if known else None
