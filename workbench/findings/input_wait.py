"""How long a step waits for its data, what it waits for, and what a free loader would save.

Shared by the rules about loading. The saving is measured where steps were replayed on batches at
hand; otherwise it is bounded by what the trace's replay, or the wait itself, leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.findings.finding import Facts, Severity
from workbench.findings.usual_steps import usual

NOTE_SHARE = 0.05
"""The TensorBoard plugin's recommendation fires above it."""
WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""Both as TraceML documents them."""
LEAST_STEPS_WARNING = 2
LEAST_STEPS_CRITICAL = 20
FAST_ENOUGH = 0.8
"""Own choice: workers that make a batch in less of the step's own time keep up with it."""
MOST = 0.5
"""Own choice: a cause must be so much of what the loader itself does."""
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
    saving_ns: float
    low_ns: float
    high_ns: float


@dataclass(frozen=True, kw_only=True)
class Stalled:
    """A wait that matters, and the shares of it that each cause has."""

    wait: Wait
    bound_ns: float
    """What a step saves at most without any of it."""
    parts: Mapping[str, float]
    """Causes that could be told, by share; what is missing was not measured."""
    split: bool
    """Whether the wait itself was divided; otherwise these are shares of the fetch."""
    usual_share: float
    """Of a step the share of the wait, without the few steps that wait far longer."""

    def severity(self, saving_ns: float) -> Severity:
        """By the share, and no higher than what ending it saves or what the usual step waits."""
        saved = saving_ns / self.wait.step_ns if self.wait.step_ns > 0 else 0.0
        return severity(min(self.wait.share, saved, self.usual_share), self.wait.steps)

    def share(self, *names: str) -> float:
        """Of the wait, so much is due to these."""
        return min(1.0, sum(self.parts.get(name, 0.0) for name in names))

    def leads(self, *names: str) -> bool:
        """Whether these are most of what the loader itself does, and matter to the step.

        Starts of epochs are another matter, and so is waiting for a processor, which whatever
        else runs on the machine may have taken.
        """
        own = 1.0 - self.share("oversubscription", "startup")
        share = self.share(*names)
        return share >= MOST * own and share * self.wait.share > NOTE_SHARE

    def saving_ns(self, *names: str) -> float:
        """What a step saves at most without these."""
        return self.bound_ns * self.share(*names)

    def speedup(self, *names: str) -> float | None:
        """How many times as fast a step is at most without these."""
        rest = self.wait.step_ns - self.saving_ns(*names)
        return self.wait.step_ns / rest if rest > 0 else None


def severity(share: float, steps: int) -> Severity:
    """Of a share of the step."""
    if share >= CRITICAL_SHARE and steps >= LEAST_STEPS_CRITICAL:
        return "critical"
    return "warning" if share >= WARNING_SHARE else "info"


def stalled(facts: Facts) -> Stalled | None:
    """The wait by cause; ``None`` where it is small, unknown, or measured to cost nothing."""
    wait = None if facts.voids("causes") else measured_wait(facts)
    if wait is None or wait.share <= NOTE_SHARE or wait.steps < LEAST_STEPS_WARNING:
        return None
    if costs_nothing(facts, wait):
        return None
    parts = _split(facts.stalls_ns)
    usually = measured_wait(usual(facts)[0])
    return Stalled(
        wait=wait,
        bound_ns=bound(facts, wait),
        parts=_fetched(facts, wait) if parts is None else parts,
        split=parts is not None,
        usual_share=wait.share if usually is None else usually.share,
    )


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
    high = min(step, max(0.0, step - replay + margin))
    if facts.effective.get("workers") == 0 and facts.input_ns:
        high = min(high, sum(facts.input_ns) / len(facts.input_ns))
    return Freed(
        step_ns=step,
        replay_ns=replay,
        saving_ns=min(max(0.0, step - replay), high),
        low_ns=min(max(0.0, step - replay - margin), high),
        high_ns=high,
    )


def costs_nothing(facts: Facts, wait: Wait) -> bool:
    """Whether steps on batches at hand were measured to take as long."""
    found = freed(facts)
    return found is not None and found.high_ns <= NOTE_SHARE * wait.step_ns


def bound(facts: Facts, wait: Wait) -> float:
    """What a step saves at most without the wait: measured, else replayed, else the wait."""
    found = freed(facts)
    if found is not None:
        return min(found.high_ns, wait.step_ns)
    replayed = None if facts.bounds_ns is None else facts.bounds_ns.get("input")
    if replayed is None or wait.device is None:
        return min(wait.per_step_ns, wait.step_ns)
    return min(replayed if wait.profiled else min(replayed, wait.most_ns or replayed), wait.step_ns)


def _split(stalls: Mapping[str, int | None] | None) -> dict[str, float] | None:
    """Shares of the parts that were seen."""
    known = {name: ns for name, ns in (stalls or {}).items() if ns is not None}
    total = sum(known.values())
    return {name: ns / total for name, ns in known.items()} if total > 0 else None


def _fetched(facts: Facts, wait: Wait) -> dict[str, float]:
    """Shares of the fetch of all batches, for want of a division of the waits themselves.

    The starts of epochs come first. Workers that make batches faster than they are taken are not
    what the loop waits for.
    """
    found, workers = facts.loader_stages, facts.effective.get("workers") or 0
    start = _start_share(facts, wait)
    if found is None or not found.fetch_ns:
        return {"startup": start} if start else {}
    taken = FAST_ENOUGH * (wait.step_ns - wait.per_step_ns)
    if workers and found.batch_ns / workers < taken:
        return {"startup": start, "other": 1 - start}
    storage = found.read_wait_ns or 0
    # Where there is a processor for each worker, it is other programs that take it.
    usable = facts.environment.get("usable_cpus")
    crowded = isinstance(usable, int) and workers > usable
    delay = min(found.run_delay_ns or 0, max(found.samples_ns - storage, 0))
    delayed = delay if crowded else 0
    able = max(found.samples_ns - storage - delay, 0)
    decode = min(able, max(found.fetch_cpu_ns - found.collate_ns, 0))
    parts = {
        "storage": storage,
        "decode": decode,
        "collate": found.collate_ns,
        "oversubscription": delayed,
        "other": able - decode,
    }
    whole = sum(parts.values())
    shares = {name: ns / whole * (1 - start) for name, ns in parts.items()} if whole else {}
    return shares | {"startup": start}


def _start_share(facts: Facts, wait: Wait) -> float:
    """Of the wait, what epochs after the first one took to give their first batch."""
    later = facts.epoch_starts[1:]
    batches = sum(epoch.batches for epoch in facts.epoch_starts)
    if not later or not batches or wait.per_step_ns <= 0:
        return 0.0
    lost = sum(max(e.start_wait_ns - (e.median_wait_ns or 0.0), 0.0) for e in later if e.workers)
    return min(1.0, lost / batches / wait.per_step_ns)


def samples_per_step(facts: Facts) -> float | None:
    """Samples of a step, where they are known."""
    count = facts.effective.get("samples_per_step")
    return float(count) if count else None
