"""WB101: the step waits for data.

What: the share of a step that nothing else fills while the loop waits in the loader's next().
Why: a device (or the training process) that waits for a batch cannot be made faster by anything
but a faster loader.
What to do: load in worker processes, make decoding and transforms cheaper, or cache; where a
sample costs only microseconds, fetch whole batches with one index call instead of adding workers.
When it is wrong: on a device, waiting that the device's queue hides costs nothing, so only the
exposed part counts; where the trace cannot show it, the verdict is "cannot tell".
"""

from dataclasses import dataclass
from typing import Any

from workbench.findings.finding import Facts, Finding, Severity
from workbench.units import share_text, time_text

CODE = "WB101"

NOTE_SHARE = 0.05
"""The TensorBoard plugin's recommendation fires above it."""
WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""Both as TraceML documents them."""
LEAST_STEPS_WARNING = 2
LEAST_STEPS_CRITICAL = 20
CHEAP_SAMPLE_NS = 100_000
"""Below it a worker's transfer costs more than the fetch it saves: rows of an in-memory table at
tens of microseconds each became 3 to 4 times slower with one worker (pytorch/pytorch #10260)."""


@dataclass(frozen=True, kw_only=True)
class _Wait:
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
        return min(1.0, self.per_step_ns / self.step_ns) if self.step_ns > 0 else 0.0


def input_bound(facts: Facts) -> Finding | None:
    """Fires when exposed waiting for data takes more than 5 % of a step."""
    if not _causes_hold(facts):
        return _cannot_tell(facts)
    wait = _measured_wait(facts)
    if wait is None or wait.share <= NOTE_SHARE or wait.steps < LEAST_STEPS_WARNING:
        return None
    saving = min(_bound(facts, wait), wait.step_ns)
    rest = wait.step_ns - saving
    advice, setting = _advice(facts, wait)
    return Finding(
        code=CODE,
        title=f"Input-bound: {share_text(wait.share)} of each step is waiting for data "
        f"(on average {time_text(wait.per_step_ns)} of {time_text(wait.step_ns)}"
        + (" under the profiler)." if wait.profiled else ")."),
        verdict="yes",
        severity=_severity(wait),
        evidence={
            "wait_us_per_step": wait.per_step_ns / 1000,
            "step_us": wait.step_ns / 1000,
            "steps": wait.steps,
            "source": wait.source,
            "workers": facts.effective.get("workers"),
            "wait_us_per_sample": _per_sample_us(facts, wait),
        },
        advice=advice,
        share_of_window=wait.share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=wait.step_ns / rest if rest > 0 else None,
        setting=setting,
        rank=facts.rank,
        device=wait.device,
    )


def _causes_hold(facts: Facts) -> bool:
    return not any("causes" in v.voids for v in facts.violations)


def _measured_wait(facts: Facts) -> _Wait | None:
    if facts.devices:
        return _device_wait(facts)
    if facts.step_ns and facts.input_ns and sum(facts.step_ns) > 0:
        count = len(facts.step_ns)
        return _Wait(
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
    return _Wait(
        per_step_ns=waited / facts.trace_steps,
        step_ns=facts.trace_window_ns / facts.trace_steps,
        steps=facts.trace_steps,
        source="trace",
        profiled=True,
    )


def _device_wait(facts: Facts) -> _Wait | None:
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
    return _Wait(
        per_step_ns=per_step,
        step_ns=step,
        steps=steps,
        source="trace",
        profiled=not facts.step_ns,
        device=worst.index,
        most_ns=most,
    )


def _bound(facts: Facts, wait: _Wait) -> float:
    """The replayed bound where a device was replayed; never more than the step of record allows."""
    bound = None if facts.bounds_ns is None else facts.bounds_ns.get("input")
    if bound is None or wait.device is None:
        return wait.per_step_ns
    return bound if wait.profiled else min(bound, wait.most_ns or bound)


def _severity(wait: _Wait) -> Severity:
    if wait.share >= CRITICAL_SHARE and wait.steps >= LEAST_STEPS_CRITICAL:
        return "critical"
    return "warning" if wait.share >= WARNING_SHARE else "info"


def _per_sample_us(facts: Facts, wait: _Wait) -> float | None:
    samples = facts.effective.get("samples_per_step")
    return wait.per_step_ns / samples / 1000 if samples else None


def _advice(facts: Facts, wait: _Wait) -> tuple[str, dict[str, Any] | None]:
    """What to try, and the setting that does it where a switch can act."""
    workers = facts.effective.get("workers")
    usable = facts.environment.get("usable_cpus")
    per_sample = _per_sample_us(facts, wait)
    if workers is None:
        return (
            "Load batches ahead of time: a DataLoader with worker processes, cheaper decoding "
            "or a cache. What inside the loader is slow cannot be seen from here.",
            None,
        )
    if per_sample is not None and per_sample * 1000 < CHEAP_SAMPLE_NS and workers == 0:
        return (
            "Each sample costs only microseconds: fetch whole batches with one index call "
            "(give the dataset a __getitems__ method). More workers would likely be slower.",
            None,
        )
    if workers == 0:
        wanted = max(1, min(4, usable)) if isinstance(usable, int) else 2
        return (
            f"Load in worker processes: try workers={wanted} and measure again.",
            {"workers": wanted},
        )
    if isinstance(usable, int) and workers < usable:
        return (
            f"The loader's {workers} workers cannot keep up: try workers={usable}, "
            "or make decoding and transforms cheaper.",
            {"workers": usable},
        )
    return (
        f"All usable processors already load data ({workers} workers): make decoding and "
        "transforms cheaper, cache decoded samples, or move transforms to the device.",
        None,
    )


def _cannot_tell(facts: Facts) -> Finding | None:
    if not facts.trace_input_wait_ns or not facts.trace_window_ns:
        return None
    share = facts.trace_input_wait_ns / facts.trace_window_ns
    if share <= NOTE_SHARE:
        return None
    return Finding(
        code=CODE,
        title=f"The loop waits for data during {share_text(share)} of the window, but this trace "
        "cannot show whether the device was idle for it.",
        verdict="cannot_tell",
        severity="info",
        evidence={
            "wait_us": facts.trace_input_wait_ns / 1000,
            "violations": [v.code for v in facts.violations],
        },
        advice="Record again so that launches and kernels are both in the trace.",
        share_of_window=None,
        rank=facts.rank,
    )
