"""One change against the best so far: interleaved blocks, given up as soon as nothing can come."""

import math
import time
from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from workbench.recording.progress import Progress
from workbench.settings import Settings
from workbench.statistics.change import LEAST_BLOCKS, Change
from workbench.tuning.attempt import joined
from workbench.tuning.fair import fair_blocks
from workbench.tuning.trial import FairRuns, Trial

if TYPE_CHECKING:
    from workbench.workload import Workload

Ended = Literal["decided", "dropped", "failed", "interrupted", "time_limit"]

A, B = 0, 1
MOST_BLOCKS = 2 * LEAST_BLOCKS
"""Of each side: where four promise something and cannot tell, as many again are measured."""


@dataclass(frozen=True, kw_only=True)
class Duel:
    """What was measured of both sides, and how it ended."""

    runs: FairRuns
    ended: Ended
    change: Change
    seconds: float

    @property
    def sides(self) -> tuple[Trial, Trial]:
        """Without the change, and with it."""
        return self.runs.trials[A], self.runs.trials[B]


@dataclass(kw_only=True)
class Ring:
    """Where duels are fought: the workload, the steps of a block, and what is warm already."""

    work: "Workload"
    steps: int
    bar: Progress
    warmed: MutableMapping[Settings, float]

    def fight(self, base: Settings, change: Settings, *, limit_s: float) -> Duel:
        """Measure pair after pair of blocks until it is decided, hopeless, or out of time.

        Four blocks of each side are the least for a verdict, which they give only when every block
        with the change is faster than every one without it. So nothing is lost by giving up when
        the first steps exclude a gain, or two pairs show none.
        """
        began = time.monotonic()
        both = [base, joined(base, change)]
        runs: FairRuns | None = None
        ended: Ended = "decided"
        for blocks in (1, 1, LEAST_BLOCKS - 2, MOST_BLOCKS - LEAST_BLOCKS):
            more = self._measured(both, blocks, limit_s - (time.monotonic() - began))
            runs = more if runs is None else together(runs, more)
            stop = _stopped(more, runs)
            if stop is not None:
                ended = stop
                break
        if runs is None:
            raise AssertionError("at least one pair is measured")
        return Duel(
            runs=runs, ended=ended, change=runs.change(A, B), seconds=time.monotonic() - began
        )

    def _measured(self, both: list[Settings], blocks: int, limit_s: float) -> FairRuns:
        for settings in both:
            if settings.compile in {"reduce-overhead", "max-autotune"} or settings.cuda_graphs:
                self.warmed.pop(settings, None)  # their graphs are let go after each block
        return fair_blocks(
            self.work,
            both,
            steps=self.steps,
            blocks=blocks,
            time_limit_s=max(limit_s, 0.1),
            progress=self.bar,
            warmed=self.warmed,
        )


def together(first: FairRuns, more: FairRuns) -> FairRuns:
    """Two measurements of the same settings as one."""
    return replace(
        more,
        trials=tuple(map(_longer, first.trials, more.trials)),
        elapsed_s=first.elapsed_s + more.elapsed_s,
        notes=tuple(dict.fromkeys((*first.notes, *more.notes))),
    )


def _longer(first: Trial, more: Trial) -> Trial:
    failed = not more.ok and more.outcome != "not_measured"
    return replace(
        more if failed else first,
        blocks=(*first.blocks, *more.blocks),
        warmup_ns=first.warmup_ns or more.warmup_ns,
        effective=more.effective or first.effective,
        compilation=first.compilation or more.compilation,
        notes=tuple(dict.fromkeys((*first.notes, *more.notes))),
        warnings=tuple(dict.fromkeys((*first.warnings, *more.warnings))),
    )


def _stopped(more: FairRuns, runs: FairRuns) -> Ended | None:
    """Why no further pair is measured; ``None``: go on."""
    if more.ended == "interrupted":
        return "interrupted"
    pairs, outcomes = len(runs.trials[B].blocks), {trial.outcome for trial in runs.trials}
    if more.ended == "time_limit" or "timed_out" in outcomes:
        whole = outcomes == {"measured"} and min(_counts(runs)) >= LEAST_BLOCKS
        return "decided" if whole else "time_limit"
    if not outcomes <= {"measured", "not_measured"}:
        return "failed"
    if pairs < 2:
        return "dropped" if _excluded(runs) else None
    gain = _gain(runs)
    if pairs < LEAST_BLOCKS:
        return "dropped" if gain <= 0 else None
    change = runs.change(A, B)
    promising = change.verdict == "cannot_tell" and gain > (change.noise_floor or 0.0) / 2
    return None if promising and pairs < MOST_BLOCKS else "decided"


def _counts(runs: FairRuns) -> list[int]:
    return [len(trial.blocks) for trial in runs.trials]


def _excluded(runs: FairRuns) -> bool:
    """Whether the single steps of the first pair leave no room for a gain."""
    found = step_interval(runs)
    return found is not None and found[1] >= 1.0


def step_interval(runs: FairRuns) -> tuple[float, float, float] | None:
    """Ratio of both sides with an interval from single steps, as if they were independent.

    They are not, so this serves to give up and to show, never to keep.
    """
    import numpy as np

    from workbench.statistics.ranks import shift_interval

    per, clean = runs.per(A, B), runs.undisturbed(A, B)
    sides = []
    for trial in runs.trials:
        steps = [ns for block in trial.times(per, undisturbed=clean) for ns in block]
        sides.append(np.log(np.asarray(steps, dtype=np.float64)))
    found = shift_interval(*sides)
    return None if found is None else (math.exp(found[0]), math.exp(found[1]), math.exp(found[2]))


def _gain(runs: FairRuns) -> float:
    """By how much the median block with the change is faster, as a share; negative: slower."""
    ratio: Any = runs.change(A, B).ratio
    return 0.0 if ratio is None else 1 - float(ratio)
