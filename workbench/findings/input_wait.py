"""How long a step waits for its data, and what a free loader would save.

Shared by the rules about loading. The saving is measured where steps were replayed on batches at
hand; otherwise it is bounded by what the trace's replay, or the wait itself, leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.findings.finding import Facts, Severity

NOTE_SHARE = 0.05
"""The TensorBoard plugin's recommendation fires above it."""
WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""Both as TraceML documents them."""
LEAST_STEPS_WARNING = 2
LEAST_STEPS_CRITICAL = 20
UNTOLD = 0.5
"""Own choice: half of an interval that is wider, as a share of the step, leaves all open."""


@dataclass(frozen=True, kw_only=True)
class Wait:
    """How long a step waits for data, and how we know."""

    per_step_ns: float
    step_ns: float
    steps: int
    source: str
    profiled: bool
    """Whether ``step_ns`` was taken under the profiler, and so is no real step time."""
    device: int | None = None
    most_ns: float | None = None
    """What the step of record leaves beside the device's work."""

    @property
    def share(self) -> float:
        """Of the step."""
        return min(1.0, self.per_step_ns / self.step_ns) if self.step_ns > 0 else 0.0

    def severity(self, saving_ns: float) -> Severity:
        """By the share, and no higher than by what a free loader saves; of few steps never top."""
        saved = saving_ns / self.step_ns if self.step_ns > 0 else 0.0
        return severity(min(self.share, saved), self.steps)


@dataclass(frozen=True, kw_only=True)
class Freed:
    """What a step saves if its loader is free: measured, with a 95 % interval."""

    step_ns: float
    """Mean step of record."""
    replay_ns: float
    """Median step on batches at hand."""
    fastest_ns: float
    """Fastest of them: no step is known to take less."""
    saving_ns: float
    low_ns: float
    high_ns: float


def severity(share: float, steps: int) -> Severity:
    """Of a share of the step."""
    if share >= CRITICAL_SHARE and steps >= LEAST_STEPS_CRITICAL:
        return "critical"
    return "warning" if share >= WARNING_SHARE else "info"


def measured_wait(facts: Facts) -> Wait | None:
    """The exposed wait of a device, else the wait of record, else that of the trace."""
    if facts.devices:
        return _device_wait(facts)
    if facts.step_ns and facts.input_ns and sum(facts.step_ns) > 0:
        count = len(facts.step_ns)
        return Wait(
            per_step_ns=sum(facts.input_ns) / count,
            step_ns=sum(facts.step_ns) / count,
            steps=count,
            source="measured without the profiler",
            profiled=False,
        )
    if facts.host_breakdown_ns is None or not facts.trace_steps or not facts.trace_window_ns:
        return None
    waited = facts.host_breakdown_ns.get("input")
    if facts.trace_input_wait_ns is None or waited is None:
        return None
    return Wait(
        per_step_ns=waited / facts.trace_steps,
        step_ns=facts.trace_window_ns / facts.trace_steps,
        steps=facts.trace_steps,
        source="trace",
        profiled=True,
    )


def _device_wait(facts: Facts) -> Wait | None:
    """The worst device's exposed wait; capped by what the step of record leaves beside its work."""
    worst = max(facts.devices, key=lambda d: d.idle_by_cause.get("input") or 0)
    exposed = worst.idle_by_cause.get("input")
    if exposed is None or not facts.trace_steps or worst.window_ns <= 0:
        return None
    if facts.trace_step_ns and worst.steady_input_ns is not None:
        steps, exposed = len(facts.trace_step_ns), worst.steady_input_ns
        step = sum(facts.trace_step_ns) / steps
    else:
        steps, step = facts.trace_steps, worst.window_ns / facts.trace_steps
    per_step = exposed / steps
    most = None
    if facts.step_ns:
        record = sum(facts.step_ns) / len(facts.step_ns)
        most = max(0.0, record - worst.busy_ns / facts.trace_steps)
        per_step, step = min(per_step, most), record
    return Wait(
        per_step_ns=per_step,
        step_ns=step,
        steps=steps,
        source="trace",
        profiled=not facts.step_ns,
        device=worst.index,
        most_ns=most,
    )


def freed(facts: Facts) -> Freed | None:
    """The measured saving of a free loader; ``None`` where no step was replayed.

    The steps of record are what they are: the interval is Student's for the replayed ones, widened
    by what the same steps differ by between two blocks. A loader in the training process itself
    saves its wait and no more. Replayed steps that scatter over half a step tell nothing.
    """
    if not facts.step_ns or not facts.replay_step_ns:
        return None
    import numpy as np

    from workbench.statistics.spread import compare_rows

    replayed = np.asarray([facts.replay_step_ns], np.float64)
    step, replay = sum(facts.step_ns) / len(facts.step_ns), float(np.median(replayed))
    own = float(np.nan_to_num(compare_rows(replayed, np.full((1, 2), step)).margin[0]))
    margin = float(np.hypot(own, (facts.noise_floor or 0.0) * replay))
    if margin > UNTOLD * step:
        return None
    fastest = float(min(facts.replay_step_ns))
    high = max(0.0, step - max(replay - margin, fastest))
    if facts.effective.get("workers") == 0 and facts.input_ns:
        high = min(high, sum(facts.input_ns) / len(facts.input_ns))
    return Freed(
        step_ns=step,
        replay_ns=replay,
        fastest_ns=fastest,
        saving_ns=min(max(0.0, step - replay), high),
        low_ns=min(max(0.0, step - replay - margin), high),
        high_ns=high,
    )


def costs_nothing(facts: Facts, wait: Wait) -> bool:
    """Whether steps on batches at hand were measured to take as long."""
    found = freed(facts)
    return found is not None and found.high_ns <= NOTE_SHARE * wait.step_ns


def bound(facts: Facts, wait: Wait) -> float:
    """What a step saves at most without the wait: measured, else replayed, else the wait.

    Measured, it is the step less the one on batches at hand, at the far end of the interval, since
    half of all estimates are too low. Where nobody can tell a difference, it is no more than the
    wait. No bound is longer than what the fastest step on a batch at hand leaves.
    """
    found, most = freed(facts), wait.step_ns
    if facts.replay_step_ns and not wait.profiled:
        most = max(0.0, most - min(facts.replay_step_ns))
    if found is not None:
        clear = found.low_ns > 0
        return min(found.high_ns if clear else min(found.high_ns, wait.per_step_ns), most)
    replayed = None if facts.bounds_ns is None else facts.bounds_ns.get("input")
    if replayed is None or wait.device is None:
        return min(wait.per_step_ns, most)
    return min(replayed if wait.profiled else min(replayed, wait.most_ns or replayed), most)


def samples_per_step(facts: Facts) -> float | None:
    """Samples of a step, where they are known."""
    count = facts.effective.get("samples_per_step")
    return float(count) if count else None
