"""WB101: the step waits for data.

What: the share of a step that nothing else fills while the loop waits in the loader's next().
Why: a device (or the training process) that waits for a batch cannot be made faster by anything
but a faster loader.
What to do: load in worker processes, make decoding and transforms cheaper, or cache; where a
sample costs only microseconds, fetch whole batches with one index call instead of adding workers.
When it is wrong: on a device, waiting that the device's queue hides costs nothing, so only the
exposed part counts; a few steps that wait far longer than all others (the start of an epoch) are
told apart, since they would make the mean; where neither the trace nor steps on batches at hand can
show it, the verdict is "cannot tell". A loader that is free of cost is what bounds the gain, and no
loader is.
"""

from typing import Any

from workbench.findings.finding import Facts, Finding
from workbench.findings.input_wait import (
    LEAST_STEPS_WARNING,
    NOTE_SHARE,
    Freed,
    Wait,
    bound,
    costs_nothing,
    freed,
    measured_wait,
    samples_per_step,
)
from workbench.findings.loader_advice import UNSEEN, advice, needed_rate
from workbench.findings.stalled import CAUSES, Stalled, stalled
from workbench.findings.usual_steps import Few, usual
from workbench.units import count_text, share_text, significant, time_text

CODE = "WB101"

ROUNDING = 0.005
"""Sums of rounded times are no gain beyond the wait."""
KEEP_ALIVE = (
    "Keep the workers alive between epochs: DataLoader(persistent_workers=True). More workers "
    "would take longer to start."
)
LEAST_BATCHES = 2
"""Where no steps are marked; a single wait may be the loader's start."""


def input_bound(facts: Facts) -> Finding | None:
    """Fires when exposed waiting for data takes more than 5 % of a step."""
    whole = facts
    facts, few = usual(facts)
    if facts.voids("causes"):
        return _replayed(facts) or _cannot_tell(facts)
    wait = measured_wait(facts)
    if wait is None or wait.steps < LEAST_STEPS_WARNING:
        return _of_the_recording(facts)
    if wait.share <= NOTE_SHARE or costs_nothing(facts, wait):
        return None if few is None else _in_few_steps(whole, few, wait)
    return _finding(facts, wait, few)


def _replayed(facts: Facts) -> Finding | None:
    """Where the trace cannot show what the device idled for, steps on batches at hand can."""
    found = freed(facts)
    if found is None or not facts.step_ns or found.low_ns <= NOTE_SHARE * found.step_ns:
        return None
    wait = Wait(
        per_step_ns=found.saving_ns,
        step_ns=found.step_ns,
        steps=len(facts.step_ns),
        source="steps on batches at hand",
        profiled=False,
    )
    return None if wait.steps < LEAST_STEPS_WARNING else _finding(facts, wait)


def _in_few_steps(facts: Facts, few: Few, usually: Wait) -> Finding | None:
    """A note where the usual step hardly waits, but a few are most of what the loop waits."""
    wait = measured_wait(facts)
    if wait is None or wait.device is not None or wait.share <= NOTE_SHARE:
        return None
    saving = min(few.steps * few.wait_ns / few.of, wait.per_step_ns)
    rest = wait.step_ns - saving
    return Finding(
        code=CODE,
        title=f"{count_text(few.steps)} of {count_text(few.of)} steps "
        f"{'waits' if few.steps == 1 else 'wait'} {time_text(few.wait_ns)} for data"
        f"{'' if few.steps == 1 else ' each'}, {share_text(saving / wait.step_ns)} of all time; "
        f"the others wait for {share_text(usually.share)} of theirs.",
        verdict="yes",
        severity="info",
        evidence={
            "slow_steps": few.steps,
            "steps": few.of,
            "slow_step_wait_us": few.wait_ns / 1000,
            "usual_wait_us_per_step": usually.per_step_ns / 1000,
            "usual_step_us": usually.step_ns / 1000,
            "source": wait.source,
            "workers": facts.effective.get("workers"),
        },
        advice="Look at what is special about these steps, such as the start of an epoch "
        "(DataLoader(persistent_workers=True)) or a cold cache: a faster loader changes the others "
        "little.",
        share_of_window=min(1.0, saving / wait.step_ns),
        saving_ns_per_step_at_most=saving,
        speedup_at_most=wait.step_ns / rest if rest > 0 else None,
        rank=facts.rank,
    )


def _more_than_the_wait(facts: Facts, wait: Wait, saving: float) -> str:
    """Why the bound is above the wait, where it is."""
    if saving <= wait.per_step_ns * (1 + ROUNDING):
        return ""
    found = freed(facts)
    if found is None:
        return (
            " The gain can be more than the wait: with the loader free the host runs further "
            "ahead, and hides more of its own work."
        )
    if found.saving_ns <= wait.per_step_ns:
        return " The gain is above the wait because steps on batches at hand scatter so much."
    return (
        f" The gain is above the wait: a step on batches at hand takes {time_text(found.replay_ns)}"
        ", so the loader's workers slow the step itself down as well."
    )


def _finding(facts: Facts, wait: Wait, few: Few | None = None) -> Finding:
    saving = bound(facts, wait)
    rest = wait.step_ns - saving
    told, setting = advice(facts, wait)
    found = stalled(facts)
    if found is not None and found.starts_lead and few is None:
        told, setting = KEEP_ALIVE, {"persistent_workers": True}
    rate = needed_rate(facts)
    if rate is not None and rate > 1:
        told = f"{_too_slow(facts, rate)} {told}"
    told += _more_than_the_wait(facts, wait, saving)
    apart = "" if few is None else _apart(few)
    cause, words = _mostly(found, few)
    mostly = "" if cause is None else f", mostly {words}"
    return Finding(
        code=CODE,
        title=f"Input-bound: {share_text(wait.share)} of each step is waiting for data "
        f"(on average {time_text(wait.per_step_ns)} of {time_text(wait.step_ns)}"
        + (" under the profiler" if wait.profiled else "")
        + f"{apart}){mostly}.",
        verdict="yes",
        severity=wait.severity(saving),
        evidence={
            "wait_us_per_step": wait.per_step_ns / 1000,
            "step_us": wait.step_ns / 1000,
            "steps": wait.steps,
            "source": wait.source,
            "workers": facts.effective.get("workers"),
            "wait_us_per_sample": _per_sample_us(facts, wait),
            **({} if cause is None else {"mostly": cause}),
            **({} if few is None else {"slow_steps_left_out": few.steps}),
            **_ceilings(facts, freed(facts)),
        },
        advice=told,
        share_of_window=wait.share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=wait.step_ns / rest if rest > 0 else None,
        setting=setting,
        rank=facts.rank,
        device=wait.device,
    )


def _mostly(found: Stalled | None, few: Few | None) -> tuple[str | None, str]:
    """What most of the wait is for, and the same in words."""
    if found is None:
        return None, ""
    if found.starts_lead and few is None:
        return "startup", "for workers that start anew at every epoch"
    cause = found.leading
    return cause, "" if cause is None else CAUSES[cause]


def _too_slow(facts: Facts, rate: float) -> str:
    """How far the loader alone is from bringing a batch in the time of a step without it."""
    found, alone = freed(facts), facts.loader_alone_batch_ns
    assert found is not None
    assert alone is not None
    return (
        f"Alone the loader takes {time_text(alone)} a batch, the step {time_text(found.replay_ns)} "
        f"without it: it would have to be {significant(rate)} times as fast for no wait."
    )


def _apart(few: Few) -> str:
    """What was left out of the averages."""
    if few.steps == 1:
        return f", without one step that waits {time_text(few.wait_ns)}"
    return f", without {count_text(few.steps)} steps that wait {time_text(few.wait_ns)} each"


def _ceilings(facts: Facts, found: Freed | None) -> dict[str, Any]:
    """What was measured with the loader free, and of the loader alone."""
    alone = facts.loader_alone_batch_ns
    measured: dict[str, Any] = {}
    if found is not None:
        measured = {
            "replayed_step_us": found.replay_ns / 1000,
            "fastest_replayed_step_us": found.fastest_ns / 1000,
            "saving_low_us": found.low_ns / 1000,
            "saving_high_us": found.high_ns / 1000,
        }
    if alone is not None:
        measured["loader_alone_batch_us"] = alone / 1000
    if (rate := needed_rate(facts)) is not None and rate > 1:
        measured["needed_loader_speedup"] = rate
    return measured


def _of_the_recording(facts: Facts) -> Finding | None:
    """A note about a trace of one step, or without any; a step of record alone is no loop."""
    if facts.step_ns or (facts.trace_input_batches or 0) < LEAST_BATCHES - bool(facts.trace_steps):
        return None
    if facts.devices:
        worst = max(facts.devices, key=lambda d: d.idle_by_cause.get("input") or 0)
        device, waited = worst.index, worst.idle_by_cause.get("input") or 0
        window = worst.window_ns
    elif facts.host_breakdown_ns is None or not facts.trace_window_ns:
        return None
    else:
        device, waited = None, facts.host_breakdown_ns.get("input") or 0
        window = facts.trace_window_ns
    share = min(1.0, waited / window) if window > 0 else 0.0
    if share <= NOTE_SHARE:
        return None
    whole = "the one step" if facts.trace_steps else "the recording"
    return Finding(
        code=CODE,
        title=f"Waiting for data takes {share_text(share)} of {whole} ({time_text(waited)} "
        "under the profiler).",
        verdict="yes",
        severity="info",
        evidence={
            "wait_us": waited / 1000,
            "batches": facts.trace_input_batches,
            "steps": facts.trace_steps or 0,
            "source": "trace",
        },
        advice=UNSEEN,
        share_of_window=share,
        rank=facts.rank,
        device=device,
    )


def _per_sample_us(facts: Facts, wait: Wait) -> float | None:
    samples = samples_per_step(facts)
    return wait.per_step_ns / samples / 1000 if samples else None


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
