"""Ways of loading measured for real: the loop in its own process, and blocks in turns."""

import math
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from workbench.errors import TimeLimitError
from workbench.recording.progress import Progress
from workbench.settings import Settings
from workbench.statistics.blocks import evened
from workbench.tuning.block import Measuring, set_up
from workbench.tuning.fair import fair_blocks
from workbench.tuning.guard import Appetite, room, too_much
from workbench.tuning.outcome import outcome_of
from workbench.tuning.sweep.bounds import Alone
from workbench.tuning.sweep.climb import Halt
from workbench.tuning.sweep.config import Config
from workbench.tuning.sweep.pace import Measured
from workbench.tuning.sweep.stopwatch import Stopwatch
from workbench.tuning.trial import FairRuns, Trial

if TYPE_CHECKING:
    from workbench.tuning.block import Driven
    from workbench.workload import Workload

BLOCK_S = 0.4
"""Of steps that a block is planned to take, as far as its steps allow."""
STEPS = (6, 20)
ALONE = (6, 40)
ALONE_S = 1.5
"""Of the loop in its own process, as far as its steps allow."""
ALONE_SHARE = 0.15
"""Of the budget that it may take, once it has a few steps."""
WARM = 2
"""First steps that are not counted there."""
FEW = 3


@dataclass(kw_only=True)
class RealBench:
    """Runs the loop; everything is as it was after each call."""

    work: "Workload"
    as_it_is: Config
    effective: Mapping[str, Any]
    progress: Progress
    budget_s: float
    interrupted: Callable[[], bool] | None = None
    measured: dict[Config, Measured] = field(default_factory=dict)
    failure: str | None = None
    """Why the loop could not run in its own process."""
    notes: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.budget_s
        self._steps: int | None = None
        self._estimate_s = 0.0
        self._warmed: dict[Settings, float] = {}

    def alone(self, config: Config) -> Alone:
        """Batch and step take turns in this process, each measured by itself."""
        measuring = Measuring(progress=self.progress, interrupted=self.interrupted)
        settings = config.settings(self.as_it_is)
        try:
            with set_up(self.work, settings, measuring, self._limit_s()) as driven:
                found = self._turns(driven, measuring)
        except KeyboardInterrupt:
            raise Halt("interrupted") from None
        except TimeLimitError:
            raise Halt("budget") from None
        except Exception as error:  # noqa: BLE001 - of the user's code, and told
            self.failure = outcome_of(error)[1]
            raise Halt("failed") from None
        if found is None:
            raise Halt("interrupted")
        if self._steps is None:
            self._estimate_s = (found.step_ns + found.batch_ns) / 1e9
            self._steps = min(max(int(BLOCK_S / max(self._estimate_s, 1e-9)), STEPS[0]), STEPS[1])
        return found

    def _turns(self, driven: "Driven", measuring: Measuring) -> Alone | None:
        from workbench.recording.loader.sizes import bytes_in
        from workbench.workload.placement import samples_in

        samples, size, turns = list[int | None](), None, 0
        on_cpu = driven.training.device.type == "cpu"
        began = time.monotonic()
        with Stopwatch() as watch:
            while not self._enough(turns - WARM, time.monotonic() - began):
                if measuring.stop():
                    return None
                watch.mark()
                held = [driven.loop.draw()]
                watch.mark()
                samples.append(samples_in(held[0]))
                size = bytes_in(held[0]) if size is None else size
                driven.loop.serve(held)
                driven.loop.synchronize()
                watch.mark()
                turns += 1
            pieces = watch.pieces()
        rows = [
            (*pieces[at].undisturbed(on=True), *pieces[at + 1].undisturbed(on=on_cpu))
            for at in range(3 * WARM, len(pieces), 3)
        ]
        known = [count for count in samples[WARM:] if count is not None]
        return alone_of(rows, statistics.fmean(known) if known else None, size)

    def _enough(self, counted: int, spent_s: float) -> bool:
        """Whether so many turns tell enough."""
        if counted >= ALONE[1] or (counted >= ALONE[0] and spent_s > ALONE_S):
            return True
        return counted >= FEW and spent_s > ALONE_SHARE * self.budget_s

    def measure(self, configs: Sequence[Config], blocks: int) -> None:
        """Add so many blocks to each, in turns with the others."""
        steps = self._steps or STEPS[0]
        needs = blocks * steps * sum(self._step_s(config) for config in configs)
        if needs > self._left_s():
            raise Halt("budget")
        asked = [config.settings(self.as_it_is) for config in configs]
        for config, settings in zip(configs, asked, strict=True):
            self._warmed.setdefault(settings, self._step_s(config))  # the process is warm already
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="This DataLoader will create")
            runs = fair_blocks(
                self.work,
                asked,
                steps=steps,
                blocks=blocks,
                time_limit_s=self._limit_s(),
                progress=self.progress,
                interrupted=self.interrupted,
                warmed=self._warmed,
            )
        self._add(configs, runs)
        if runs.ended == "interrupted":
            raise Halt("interrupted")
        if runs.ended == "time_limit":
            raise Halt("budget")

    def _add(self, configs: Sequence[Config], runs: FairRuns) -> None:
        clean = runs.undisturbed(*(n for n, trial in enumerate(runs.trials) if trial.blocks))
        for config, trial in zip(configs, runs.trials, strict=True):
            self.notes.update(dict.fromkeys(trial.warnings))
            if not trial.blocks and trial.outcome == "not_measured":
                continue
            new = _measured(config, trial, clean=clean)
            self.measured[config] = together(self.measured.get(config), new)

    def too_much(self, config: Config, alone: Alone) -> str | None:
        """Why it would not fit into what is free of memory and of /dev/shm."""
        free = room(str(self.effective.get("device", "cpu")))
        appetite = Appetite(batch_bytes=alone.batch_bytes)
        return too_much(config.settings(self.as_it_is), self.effective, appetite, free)

    def _step_s(self, config: Config) -> float:
        known = self.measured.get(config)
        if known is not None and known.step_ns is not None:
            return known.step_ns / 1e9
        return self._estimate_s / max(min(config.workers, 2), 1)

    def _limit_s(self) -> float | None:
        return None if math.isinf(self._until) else max(self._left_s(), 0.1)

    def _left_s(self) -> float:
        return self._until - time.monotonic()


def alone_of(
    rows: Sequence[tuple[int, int, int, int]], samples: float | None, size: int | None
) -> Alone:
    """Of wall and processor time of each batch and of each step."""
    batch, batch_cpu, step, step_cpu = zip(*rows, strict=True)
    whole = [b + s for b, s in zip(batch, step, strict=True)]
    early, late = whole[: len(whole) // 2] or whole, whole[len(whole) // 2 :]
    return Alone(
        step_ns=float(statistics.median(step)),
        batch_ns=statistics.fmean(batch),
        step_low_ns=_low(step),
        batch_low_ns=_low(batch),
        step_cpu_ns=float(statistics.median(step_cpu)),
        batch_cpu_ns=statistics.fmean(batch_cpu),
        samples=samples,
        batch_bytes=size,
        noise=abs(statistics.median(early) / statistics.median(late) - 1),
    )


def _low(values: Sequence[int]) -> float:
    """The lower quartile."""
    return float(sorted(values)[len(values) // 4])


def _measured(config: Config, trial: Trial, *, clean: bool) -> Measured:
    steps = [float(statistics.median(block)) for block in trial.times(undisturbed=clean)]
    starts = [
        block.left_out_ns[0] - step
        for block, step in zip(trial.blocks, steps, strict=True)
        if block.left_out_ns
    ]
    epoch = trial.effective.get("batches_per_epoch")
    longest = max((len(block.step_ns) for block in trial.blocks), default=0)
    peak = trial.peak_rss_bytes
    return Measured(
        block_ns=tuple(steps),
        start_ns=tuple(starts),
        waits=tuple(
            statistics.median(evened(block.input_ns, trial.period)) / statistics.median(times)
            for block, times in zip(trial.blocks, trial.times(), strict=True)
        ),
        memory_bytes=None if peak is None else peak + (trial.workers_bytes or 0),
        outcome=trial.outcome,
        reason=trial.reason,
        whole_epochs=bool(config.workers and not config.persistent and epoch and epoch < longest),
    )


def together(before: Measured | None, new: Measured) -> Measured:
    """Blocks of two rounds as one; what failed later has failed."""
    if before is None:
        return new
    return replace(
        new if new.outcome != "measured" else before,
        block_ns=(*before.block_ns, *new.block_ns),
        start_ns=(*before.start_ns, *new.start_ns),
        waits=(*before.waits, *new.waits),
        whole_epochs=before.whole_epochs or new.whole_epochs,
    )
