"""The plan of a capture, and the parts of the loop that it measures."""

import time
from dataclasses import dataclass, field
from typing import Any

from workbench.recording.clock import StepClock, step_clock
from workbench.recording.devices import device_in_use


@dataclass(frozen=True, kw_only=True)
class CapturePlan:
    """Which step of the loop does what; steps count from 0.

    The last warm-up steps are used: one is profiled alone to learn the size of a trace (``pilot``)
    and, where there are three or more, one passes between setting the profiler up and starting it.
    """

    warmup: int
    steps: int

    @property
    def pilot(self) -> int:
        """The step profiled alone."""
        return self.warmup - 2 if self.warmup >= 3 else self.warmup - 1

    @property
    def end(self) -> int:
        """The first step after the window."""
        return self.warmup + self.steps

    def fitted(self, length: int | None) -> "CapturePlan":
        """The plan for a loop of this length: shorter where the whole one does not fit.

        Half of what follows warm-up stays without the profiler, for the step time of record.
        """
        if length is None or length < 2 or length >= self.end:
            return self
        warmup = min(self.warmup, max(1, length // 4))
        rest = length - warmup
        return CapturePlan(
            warmup=warmup, steps=min(self.steps, (rest + 1) // 2 if rest > 3 else rest)
        )


@dataclass(kw_only=True)
class Phase:
    """Consecutive steps that are measured alike."""

    name: str
    clock: StepClock
    waits: list[int] = field(default_factory=list)
    most: int | None = None
    """After so many steps nothing more is kept."""
    began_ns: int = field(default_factory=time.perf_counter_ns)

    def step(self, waited_ns: int) -> None:
        """A step of this phase is complete; it waited so long for its input."""
        if not self.is_full:
            self.clock.step()
            self.waits.append(waited_ns)

    @property
    def is_full(self) -> bool:
        """Whether no further step is kept."""
        return self.most is not None and len(self.waits) >= self.most

    def age_ns(self) -> int:
        """Time since the phase began."""
        return time.perf_counter_ns() - self.began_ns

    def durations_ns(self) -> list[int]:
        """Length of every step that was kept."""
        (times,) = self.clock.durations_ns()
        return times


def begin_phase(name: str, *, most: int | None = None) -> Phase:
    """A phase that starts now, on the clock of the device that the loop uses."""
    clock = step_clock(current_device())
    clock.start()
    return Phase(name=name, clock=clock, most=most)


def current_device() -> Any:
    """The device that this process uses now; ``None`` for the CPU alone."""
    import torch

    kind = device_in_use()
    if kind is None:
        return None
    module = torch.get_device_module(kind)
    current = getattr(module, "current_device", None)
    return torch.device(kind, current()) if current is not None else torch.device(kind)
