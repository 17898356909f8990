"""What a loss costs: its share of the steps that count, and the most that ending it can save.

A saving is bounded by replaying the step without the loss where that was done, otherwise by the
pieces of idle time themselves. Profiled host time is inflated, often 1.5 to 2.5 times on small
operators, so no bound exceeds what the step of record leaves beside the device's work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workbench.findings.finding import DeviceFacts, Facts, Severity

LEAST_STEPS_WARNING = 2
LEAST_STEPS_CRITICAL = 20
"""As TraceML documents them: fewer steps are an anecdote."""
HOST = frozenset({"launch", "host_operators", "host_python", "host_other"})
"""Launches and all host code around them, which a graph of the device would take away together."""
START_UP_SHARE = 0.10
"""Own choice: with more idle time than this for loading, allocating, compiling and capturing, a
recording without several steps is one of a program's start."""


@dataclass(frozen=True, kw_only=True)
class LostTime:
    """A loss, in a form that goes into a finding."""

    ns: int
    share: float
    steps: int
    per_step_ns: float | None
    step_ns: float | None
    saving_ns: float | None
    """``None`` where the trace marks no steps."""

    @property
    def speedup(self) -> float | None:
        """How many times as fast a step is at most without the loss."""
        if self.saving_ns is None or not self.step_ns or self.step_ns <= self.saving_ns:
            return None
        return self.step_ns / (self.step_ns - self.saving_ns)

    @property
    def whole(self) -> str:
        """What the share is of."""
        if self.steps == 1:
            return "the one step"
        return "each step" if self.steps else "the recording"

    def severity(self, warning: float, critical: float) -> Severity:
        """Graded by the share, and no higher than by what its end can save at most.

        A device that waits beside a busier one, or a host that is no faster without the loss, saves
        little. Few steps lower the grade, and no steps allow a note only.
        """
        share = self.share
        if self.saving_ns is not None and self.step_ns:
            share = min(share, self.saving_ns / self.step_ns)
        if share >= critical and self.steps >= LEAST_STEPS_CRITICAL:
            return "critical"
        if share >= warning and self.steps >= LEAST_STEPS_WARNING:
            return "warning"
        return "info"


def lost_time(
    facts: Facts, device: DeviceFacts, causes: Iterable[str], *, ns: int | None = None
) -> LostTime | None:
    """What some causes of idle time cost a device; ``None`` where nothing was measured.

    A recording of a single step, or without steps, that mostly shows a program starting up says
    nothing about its loop.

    Args:
        facts: The facts of the rank.
        device: The device that idles.
        causes: The causes that the finding speaks of.
        ns: The loss itself, where it is only a part of these causes.
    """
    steady, names = device.steady, tuple(causes)
    if steady is None or steady.time_ns <= 0:
        return None
    started = steady.start_up_ns > START_UP_SHARE * device.window_ns
    if started and steady.steps < LEAST_STEPS_WARNING:
        return None
    lost = sum(steady.by_cause.get(name) or 0 for name in names) if ns is None else ns
    share = min(1.0, lost / steady.time_ns)
    if not steady.steps:
        return LostTime(
            ns=lost, share=share, steps=0, per_step_ns=None, step_ns=None, saving_ns=None
        )
    per_step, step = lost / steady.steps, steady.time_ns / steady.steps
    saving = per_step
    # What was replayed holds a pause among the steps, which these steps leave out.
    paused = steady.steps < len(facts.trace_step_ns or ())
    if ns is None and lost and not paused:
        saving = replayed(facts, names, steady.by_cause, per_step)
    if facts.step_ns:
        step = sum(facts.step_ns) / len(facts.step_ns)
        busy = device.busy_ns / facts.trace_steps if facts.trace_steps else 0.0
        saving = min(saving, max(0.0, step - busy))
    return LostTime(
        ns=lost,
        share=share,
        steps=steady.steps,
        per_step_ns=per_step,
        step_ns=step,
        saving_ns=min(saving, step),
    )


def replayed(
    facts: Facts, causes: tuple[str, ...], lost: Mapping[str, int | None], per_step: float
) -> float:
    """The replayed bound of these causes; the pieces of idle time where it is not known.

    All of the host's causes were replayed together. Of others, several at once may save more than
    each alone, so their sum is no bound where the pieces are longer.
    """
    bounds = facts.bounds_ns or {}
    whole = bounds.get("host") if frozenset(causes) == HOST else None
    if whole is not None:
        return whole
    known = [bounds.get(cause) for cause in causes if lost.get(cause)]
    found = [bound for bound in known if bound is not None]
    if not found or len(found) < len(known):
        return per_step
    return found[0] if len(found) == 1 else max(per_step, sum(found))


def worst_device(facts: Facts, causes: Iterable[str]) -> tuple[DeviceFacts, LostTime] | None:
    """The device that loses most to some causes, unless a failed check voids the causes."""
    names = tuple(causes)
    if facts.voids("causes"):
        return None
    found = [(device, lost_time(facts, device, names)) for device in facts.devices]
    known = [(device, lost) for device, lost in found if lost is not None]
    return max(known, key=lambda pair: pair[1].share, default=None)


def busy_share(device: DeviceFacts) -> float:
    """Of the steps that count, else of the window, the share in which the device works."""
    steady = device.steady
    if steady is not None and steady.steps and steady.time_ns > 0:
        idle = sum(ns or 0 for ns in steady.by_cause.values())
        return max(0.0, 1 - idle / steady.time_ns)
    return device.busy_ns / device.window_ns if device.window_ns else 1.0


def of_the_step(device: DeviceFacts, ns: int) -> float | None:
    """Share that so much work takes of the steps that count, else of the window."""
    steady = device.steady
    time = steady.time_ns if steady is not None and steady.steps else device.window_ns
    return min(1.0, ns / time) if time > 0 else None
