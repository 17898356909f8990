"""What no way of loading can beat, from the loader alone and the step alone."""

import math
from dataclasses import dataclass

from workbench.findings.loader_advice import BUSY_SHARE, CHEAP_SAMPLE_NS, FEW_SAMPLES
from workbench.findings.making import WAITING_SHARE, useful_workers
from workbench.tuning.sweep.config import Config


@dataclass(frozen=True, kw_only=True)
class Alone:
    """The loop in its own process: the batch and the step, each while the other rests.

    Times are nanoseconds. Bounds take the lower quartile, so that a busy machine excludes too
    little rather than too much.
    """

    step_ns: float
    """Median step with its batch at hand."""
    batch_ns: float
    """Mean time in which one process makes a batch."""
    step_low_ns: float
    batch_low_ns: float
    step_cpu_ns: float
    batch_cpu_ns: float
    """Processor time of all threads of this process, of a mean batch."""
    samples: float | None = None
    batch_bytes: int | None = None
    noise: float = 0.0
    """By how much two halves of its steps differ, as a share."""

    @property
    def processors_each(self) -> float:
        """Processors that one process keeps busy while it makes a batch."""
        return self.batch_cpu_ns / self.batch_ns if self.batch_ns > 0 else 1.0

    @property
    def cheap_rows(self) -> bool:
        """Whether samples cost microseconds of a processor each: rows of a table in memory."""
        if not self.samples or self.samples < FEW_SAMPLES:
            return False
        cheap = self.batch_ns / self.samples < CHEAP_SAMPLE_NS
        return cheap and self.processors_each >= BUSY_SHARE


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the loader and the step share."""

    usable_cpus: int
    on_cpu: bool
    """Whether the step computes on the processors that load."""


def most_workers(alone: Alone, machine: Machine) -> int:
    """Workers that compute: as many as processors; workers that mostly wait: more."""
    each = alone.processors_each
    if each >= WAITING_SHARE:
        return machine.usable_cpus
    return useful_workers(machine.usable_cpus, each)


def needed_workers(alone: Alone) -> int:
    """Fewest workers that could make a batch in the time of a step."""
    return max(1, math.ceil(alone.batch_ns / max(alone.step_ns, 1.0)))


def least_ns(config: Config, alone: Alone, machine: Machine) -> float:
    """A step under ``config`` cannot be shorter than this.

    In the loop's own process a batch and a step on the processors take turns. Workers make their
    batches side by side at best, and processors do not do more than their number.

    Args:
        config: The way of loading.
        alone: Batch and step by themselves, of the same fetch.
        machine: What both share.
    """
    step, batch = alone.step_low_ns, alone.batch_low_ns
    if config.workers == 0:
        return step + batch if machine.on_cpu else max(step, batch)
    return max(step, batch / config.workers, _processors_ns(alone, machine))


def ceiling_ns(alone: Alone, machine: Machine) -> float:
    """The step with any number of workers."""
    return max(alone.step_ns, _processors_ns(alone, machine))


def _processors_ns(alone: Alone, machine: Machine) -> float:
    """What the work of a step and of its batch takes of all usable processors.

    Threads of the step that wait for each other use processors, too: it counts as one thread.
    """
    batch = min(alone.batch_cpu_ns, alone.batch_low_ns)
    step = min(alone.step_cpu_ns, alone.step_low_ns) if machine.on_cpu else 0.0
    return (step + batch) / machine.usable_cpus
