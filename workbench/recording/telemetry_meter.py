"""Times of a step and its phases without a profiler, and without waiting for the device."""

import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from workbench.recording.telemetry import Telemetry

PHASES = ("forward", "backward", "optimizer")
_NAN = math.nan


class StepFacts(NamedTuple):
    """What is known of a step besides its times; made in every step, so it is a plain tuple."""

    step: int
    epoch: int
    change: int
    profiled: bool
    samples: int | None


class Meter(Protocol):
    """Measures steps on the thread that trains; it is told where phases begin and end."""

    cost_ns: int
    """Time that measuring itself took so far."""

    def restart(self) -> None:
        """The next step does not follow the last one at once: what lies between is in no step."""

    def begin_input(self) -> None:
        """The loop asks for a batch."""

    def end_input(self) -> None:
        """The batch is there."""

    def begin(self, phase: Any) -> None:
        """A phase of the step begins."""

    def end(self, phase: Any) -> None:
        """A phase of the step is handed out."""

    def end_step(self, facts: StepFacts, loss: Any) -> None:
        """The step is handed out; its loss is read when that makes nobody wait."""

    def collect(self, *, wait: bool = False) -> None:
        """Write the steps that the device has completed meanwhile."""


class HostMeter:
    """For work that is done when its call returns.

    Args:
        telemetry: Where steps are written.
        wait: Waits for a device that has no events to time it by.
    """

    def __init__(self, telemetry: Telemetry, wait: Callable[[], None] | None = None) -> None:
        self.cost_ns = 0
        self._telemetry = telemetry
        self._wait = wait
        self._last: int | None = None
        self._began = 0
        self._input = 0
        self._phases: dict[str, int] = {}
        self._marks = 0
        self._mark_ns = _mark_cost_ns()

    def restart(self) -> None:
        """The next step begins a new series."""
        self._last = None
        self._phases.clear()

    def begin_input(self) -> None:
        """The loop asks for a batch."""
        self._began = time.perf_counter_ns()
        if self._last is None:
            self._last = self._began

    def end_input(self) -> None:
        """The batch is there."""
        self._input = time.perf_counter_ns() - self._began

    def begin(self, phase: str) -> None:
        """A phase begins."""
        if self._wait is not None:
            self._wait()
        self._phases[phase] = self._phases.get(phase, 0) - time.perf_counter_ns()

    def end(self, phase: str) -> None:
        """A phase ends."""
        if self._wait is not None:
            self._wait()
        self._phases[phase] = self._phases.get(phase, 0) + time.perf_counter_ns()
        self._marks += 1

    def end_step(self, facts: StepFacts, loss: Any) -> None:
        """The step is complete."""
        if self._wait is not None:
            self._wait()
        now = time.perf_counter_ns()
        step = now - (self._last or now)
        self._last = now
        known = self._phases
        parts = [known.get(name, _NAN) for name in PHASES]
        rest = step - self._input - sum(known.values())
        self._telemetry.add(
            _row(facts, step, self._input, parts, other=max(rest, 0), loss=number(loss))
        )
        known.clear()
        self.cost_ns += time.perf_counter_ns() - now + (self._marks + 1) * self._mark_ns
        self._marks = 0

    def collect(self, *, wait: bool = False) -> None:
        """Nothing is outstanding."""


@dataclass(kw_only=True)
class _Open:
    """A step whose work the device may not have done yet."""

    start: Any
    end: Any
    facts: StepFacts
    at_ns: int
    input_ns: int
    phases: list[tuple[str, Any, Any]] = field(default_factory=list)
    slot: int | None = None


class DeviceMeter:
    """For a device: events are queued around the phases and read when they have passed.

    The loss is copied to pinned memory behind its step and read with the step's times.
    """

    def __init__(self, telemetry: Telemetry, device: Any) -> None:
        import torch

        self.cost_ns = 0
        self._telemetry = telemetry
        self._module = torch.get_device_module(device)
        self._device = device
        self._spare: list[Any] = []
        self._last: Any = None
        self._open: deque[_Open] = deque()
        self._phases: list[tuple[str, Any, Any]] = []
        self._begun: dict[str, Any] = {}
        self._began = 0
        self._input = 0
        self._losses: Any = None
        self._free = list(range(_SLOTS))
        with suppress(RuntimeError):
            self._losses = torch.empty(_SLOTS, dtype=torch.float32, pin_memory=True)

    def restart(self) -> None:
        """The next step begins a new series."""
        self.collect(wait=True)
        self._last = None
        self._phases.clear()
        self._begun.clear()

    def begin_input(self) -> None:
        """The loop asks for a batch."""
        self._began = time.perf_counter_ns()
        if self._last is None:
            self._last = self._mark()

    def end_input(self) -> None:
        """The batch is there."""
        self._input = time.perf_counter_ns() - self._began

    def begin(self, phase: str) -> None:
        """A phase begins."""
        now = time.perf_counter_ns()
        self._begun[phase] = self._mark()
        self.cost_ns += time.perf_counter_ns() - now

    def end(self, phase: str) -> None:
        """A phase is handed out."""
        now = time.perf_counter_ns()
        begun = self._begun.pop(phase, None)
        if begun is not None:
            self._phases.append((phase, begun, self._mark()))
        self.cost_ns += time.perf_counter_ns() - now

    def end_step(self, facts: StepFacts, loss: Any) -> None:
        """The step is handed out."""
        now = time.perf_counter_ns()
        slot = self._keep(loss)
        end = self._mark()
        self._open.append(
            _Open(
                start=self._last,
                end=end,
                facts=facts,
                at_ns=time.monotonic_ns(),
                input_ns=self._input,
                phases=self._phases,
                slot=slot,
            )
        )
        self._last, self._phases = end, []
        self.collect()
        self.cost_ns += time.perf_counter_ns() - now

    def collect(self, *, wait: bool = False) -> None:
        """Write the steps that the device has completed."""
        while self._open:
            one = self._open[0]
            if not one.end.query():
                if not wait:
                    return
                one.end.synchronize()
            self._open.popleft()
            self._write(one)

    def _write(self, one: _Open) -> None:
        step = _between(one.start, one.end)
        sums: dict[str, float] = {}
        for name, begun, ended in one.phases:
            sums[name] = sums.get(name, 0.0) + _between(begun, ended)
            self._spare += (begun, ended)
        loss = _NAN
        if one.slot is not None:
            loss = float(self._losses[one.slot])
            self._free.append(one.slot)
        rest = max(step - sum(sums.values()), 0.0)
        other = rest - min(one.input_ns, rest)
        parts = [sums.get(name, _NAN) for name in PHASES]
        row = _row(
            one.facts,
            step,
            one.input_ns,
            parts,
            other=other,
            loss=loss,
            at_ns=one.at_ns,
        )
        self._telemetry.add(row)
        self._spare.append(one.start)

    def _keep(self, loss: Any) -> int | None:
        """Queue the copy of the loss to the host; ``None`` where there is none to be read."""
        if loss is None or self._losses is None or not self._free or loss.numel() != 1:
            return None
        if loss.is_complex() or loss.device.type != self._device.type:
            return None
        slot = self._free.pop()
        self._losses[slot].copy_(loss.reshape(()), non_blocking=True)
        return slot

    def _mark(self) -> Any:
        event = self._spare.pop() if self._spare else self._module.Event(enable_timing=True)
        event.record(self._module.current_stream(self._device))
        return event


_SLOTS = 1024
"""Losses that may be under way; a host that is further ahead leaves some out."""


def meter_for(device: Any, telemetry: Telemetry) -> Meter:
    """What times steps on ``device``, a ``torch.device``."""
    import torch

    if device.type == "cpu":
        return HostMeter(telemetry)
    module = torch.get_device_module(device)
    if hasattr(module, "Event") and hasattr(module, "current_stream"):
        return DeviceMeter(telemetry, device)
    return HostMeter(telemetry, wait=module.synchronize)


def number(loss: Any) -> float:
    """The value of a loss on the host; ``NaN`` where it is not one number."""
    if loss is None or loss.numel() != 1 or loss.is_complex():
        return _NAN
    return float(loss)


def _between(begun: Any, ended: Any) -> float:
    return float(begun.elapsed_time(ended) * 1e6)


def _row(
    facts: StepFacts,
    step: float,
    waited: float,
    parts: list[float],
    *,
    other: float,
    loss: float,
    at_ns: int | None = None,
) -> tuple[Any, ...]:
    return (
        facts.step,
        time.monotonic_ns() if at_ns is None else at_ns,
        step,
        waited,
        *parts,
        other,
        loss,
        _NAN if facts.samples is None else facts.samples,
        facts.epoch,
        facts.change,
        facts.profiled,
    )


def _mark_cost_ns() -> int:
    """What a pair of marks costs on this machine: the quickest of a few tries."""
    tries = []
    phases: dict[str, int] = {}
    for _ in range(20):
        began = time.perf_counter_ns()
        phases["forward"] = phases.get("forward", 0) - time.perf_counter_ns()
        phases["forward"] = phases.get("forward", 0) + time.perf_counter_ns()
        tries.append(time.perf_counter_ns() - began)
    return min(tries)
