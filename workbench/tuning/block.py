"""One block of a fair measurement: set up, lead in, measure, put back."""

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.recording.clock import HostClock, step_clock
from workbench.recording.compilation import CompileCounters, compile_counters
from workbench.recording.lead import lead_steps
from workbench.recording.limits import Limits
from workbench.recording.loader.recorder import LoaderRecorder
from workbench.recording.loop import Loop
from workbench.recording.peak_memory import MemoryProbe
from workbench.recording.progress import Progress
from workbench.recording.warned import WarningLog
from workbench.settings import Settings
from workbench.tuning.conditions import ConditionsProbe
from workbench.tuning.delays import DelayProbe
from workbench.tuning.memory import MemoryGuard
from workbench.tuning.samples import SampleLog
from workbench.tuning.trial import FairBlock

if TYPE_CHECKING:
    from workbench.workload import Workload
    from workbench.workload.training import Training

LEAST_STEPS = 3
"""A shorter block has no median worth the name."""
WARMUP_LEAST = 5
WARMUP_MOST = 50
WARMUP_MOST_S = 10.0
"""Warm-up that goes on so long after the first step ends, whatever the change test says."""
WHAT = "a block of the comparison"


@dataclass(kw_only=True)
class Measuring:
    """What all blocks share."""

    progress: Progress
    interrupted: Callable[[], bool] | None = None
    stopped: bool = False

    def stop(self) -> bool:
        """Whether somebody wants no more steps."""
        if self.interrupted is not None and not self.stopped:
            self.stopped = bool(self.interrupted())
        return self.stopped


@dataclass(frozen=True, kw_only=True)
class About:
    """What a setting turned out to be, besides its times."""

    effective: dict[str, Any]
    compilation: CompileCounters
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def warm_up(
    work: "Workload", settings: Settings, measuring: Measuring, *, time_limit_s: float | None
) -> tuple[tuple[int, ...], About]:
    """Steps until the change test finds a steady end, and everything put back.

    What stays is what belongs to the process: compiled code, chosen kernels, warm caches.
    """
    with set_up(work, settings, measuring, time_limit_s) as driven:
        times = driven.warm_up()
    return times, driven.about


def measure(
    work: "Workload",
    settings: Settings,
    measuring: Measuring,
    *,
    position: int,
    steps: Callable[[float | None, int], int],
    time_limit_s: float | None,
    whole: int = 1,
) -> tuple[FairBlock, About] | None:
    """Measure one block from the start that the workload is in, and put everything back.

    Args:
        work: Model, data and step.
        settings: What to change for this block.
        measuring: What all blocks share.
        position: Place in the order of all blocks.
        steps: From the batch size and the workers to the steps that count.
        time_limit_s: Seconds after which the block is cancelled.
        whole: Steps that count are a multiple of these, where so many are left.

    Returns:
        ``None`` when somebody wanted no more steps before all were measured.
    """
    with set_up(work, settings, measuring, time_limit_s) as driven:
        training = driven.training
        workers = training.effective.get("workers") or 0
        block = driven.block(position, steps(training.samples_per_step, workers), whole)
    return None if block is None else (block, driven.about)


@contextmanager
def set_up(
    work: "Workload",
    settings: Settings,
    measuring: Measuring,
    time_limit_s: float | None,
    *,
    prepared: "AbstractContextManager[Training] | None" = None,
) -> "Iterator[Driven]":
    """A loop under settings, ready to be driven; afterwards everything is as it was before.

    Args:
        work: Model, data and step.
        settings: What to change.
        measuring: What all blocks share.
        time_limit_s: Seconds after which it is cancelled.
        prepared: Makes it ready where one process is not all of it.
    """
    from workbench.workload import prepare
    from workbench.workload.interrupts import Deferred

    with Deferred():  # Python loses an interrupt that comes while the collector calls back
        gc.collect()  # what the block before left behind must not be collected in this one
    before = compile_counters()
    with (
        Limits(time_limit_s, WHAT) as limits,
        WarningLog() as warned,
        LoaderRecorder(on=False) as recorder,
        prepared or prepare(work, settings) as training,
    ):
        loop = Loop(training, limits, measuring.progress, recorder.probe)
        measuring.progress.stage(str(settings))
        driven = Driven(loop, training, measuring, before, warned.found)
        yield driven
        driven.learn()  # while the training is there to be asked


class Driven:
    """A loop that is set up for one block."""

    def __init__(
        self,
        loop: Loop,
        training: "Training",
        measuring: Measuring,
        before: CompileCounters,
        warned: list[str],
    ) -> None:
        self.training = training
        self.loop = loop
        self._measuring = measuring
        self._guard = MemoryGuard()
        self._before = before
        self._warned = warned
        self.about: About
        self.learn()

    def learn(self) -> None:
        """Remember what is known beside the times."""
        self.about = About(
            effective=self.training.effective,
            compilation=compile_counters().since(self._before),
            notes=tuple(self.training.notes),
            warnings=tuple(self._warned),
        )

    def warm_up(self, agree: Callable[[Any], Any] | None = None) -> tuple[int, ...]:
        """Times of the first steps, until they are steady.

        Args:
            agree: Makes the answer of one rank that of all, which must take as many steps.
        """
        from workbench.statistics.warmup import has_settled

        clock, times = HostClock(self.loop.synchronize), list[int]()
        clock.start()
        while len(times) < WARMUP_MOST and self._step() is not None:
            clock.step()
            (times,) = clock.durations_ns()
            if len(times) < WARMUP_LEAST or (agree is not None and len(times) % WARMUP_LEAST):
                continue
            over = has_settled(times) or sum(times[1:]) > WARMUP_MOST_S * 1e9
            if over if agree is None else agree(bool(over)):
                break
        return tuple(times)

    def block(
        self, position: int, count: int, whole: int = 1, *, lead: int = 0
    ) -> FairBlock | None:
        """Lead, then ``count`` steps; of these, those that are not yet steady are left out.

        Args:
            position: Place in the order of all blocks.
            count: Steps that count, before those that are not steady are taken off.
            whole: Steps that count are a multiple of these, where so many are left.
            lead: Steps that are left out at least.
        """
        from workbench.statistics.warmup import warmup_length

        filled = lead_steps(self.training.effective)
        lead = max(lead, filled)
        log, losses = SampleLog(batches=filled), list[Any]()
        self.loop.look, self.loop.losses = log.look, losses
        memory = MemoryProbe(self.training.device)
        memory.start()
        conditions = ConditionsProbe()
        clock, waits = step_clock(self.training.device), list[int]()
        with DelayProbe(on=self.training.device.type == "cpu") as probe:
            probe.step()
            clock.start()
            for _ in range(lead + count):
                wait = self._step()
                if wait is None:
                    return None
                waits.append(wait)
                clock.step()
                probe.step()
            delays, share = probe.delays_ns(), probe.others_share(conditions.others_cpu_s())
        (times,) = clock.durations_ns()
        head = lead + min(warmup_length(times[lead:]), count - LEAST_STEPS)
        if len(times) - head >= whole:
            head += (len(times) - head) % whole
        return FairBlock(
            position=position,
            step_ns=tuple(times[head:]),
            input_ns=tuple(waits[head:]),
            delay_ns=None if delays is None else delays[head:],
            delay_share=share,
            samples=tuple(log.counts[head:]),
            left_out_ns=tuple(times[:head]),
            losses=as_numbers(losses),
            sample_hashes=tuple(log.hashes),
            conditions=conditions.read(),
            **memory.read(),
        )

    def _step(self) -> int | None:
        if self._measuring.stop():
            return None
        self._guard.check()
        return self.loop.step()


def as_numbers(losses: list[Any]) -> tuple[float, ...]:
    """The values of losses that are one number each; empty where a step gives none."""
    if any(loss is None or loss.numel() != 1 for loss in losses):
        return ()
    return tuple(float(loss) for loss in losses)
