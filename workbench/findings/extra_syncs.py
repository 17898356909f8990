"""WB404: gradients are averaged more often than the optimizer steps.

What: sets of gradient all-reduces per step of the optimizer, when it accumulates micro-batches.
Why: only the sum counts, so the sets before the last one move bytes for nothing.
What to do: model.no_sync() around every micro-batch but the last one.
When it is wrong: a set after an earlier micro-batch but none after the last is worse than needless:
ranks then step with different gradients, and the finding says so instead of giving a saving.
"""

from workbench.analysis.gradient_syncs import GradientSyncs
from workbench.findings.finding import Facts, Finding, Severity
from workbench.findings.lost_time import LEAST_STEPS_WARNING
from workbench.findings.parallel_switch import parallel_with
from workbench.units import number_text, share_text

CODE = "WB404"

NOTE_SETS = 1.5
"""Own choice: clearly more than the one set that is needed, also if a step differs."""
WARNING_SHARE = 0.10
"""As for exposed communication."""


def extra_syncs(facts: Facts) -> Finding | None:
    """Fires on more than one set of gradient all-reduces per optimizer step, or none before it."""
    found = facts.gradient_syncs
    if found is None or found.passes <= 1:
        return None
    if found.unsynced >= LEAST_STEPS_WARNING and found.unsynced == found.optimizer_steps:
        return _unsynced(facts, found)
    if found.sets < NOTE_SETS:
        return None
    extra = found.sets - 1
    saving, share = _saving(facts, extra / found.sets)
    enough = (share or 0.0) >= WARNING_SHARE and found.optimizer_steps >= LEAST_STEPS_WARNING
    severity: Severity = "warning" if enough else "info"
    exposed = "" if share is None else f" Nothing hides {share_text(share)} of each step in them."
    return Finding(
        code=CODE,
        title=f"Gradients are averaged {number_text(found.sets)} times for each optimizer step, "
        f"{number_text(extra)} of them needlessly.{exposed}",
        verdict="yes",
        severity=severity,
        evidence=_evidence(found),
        advice="Wrap every micro-batch but the last one before optimizer.step() in "
        "`with model.no_sync():`.",
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        setting=parallel_with(facts, no_sync=True),
        rank=facts.rank,
    )


def _unsynced(facts: Facts, found: GradientSyncs) -> Finding:
    return Finding(
        code=CODE,
        title="The optimizer steps without a gradient synchronization just before: an earlier "
        "micro-batch was synchronized, the last one was not, so ranks may step with different "
        "gradients.",
        verdict="yes",
        severity="warning",
        evidence=_evidence(found),
        advice="Leave no_sync() for the last micro-batch before optimizer.step(), not for the "
        "first one, and compare a checksum of the gradients between ranks.",
        rank=facts.rank,
    )


def _saving(facts: Facts, part: float) -> tuple[float | None, float | None]:
    """Per step and as a share: the exposed part of the sets that are not needed."""
    if not facts.communication or not facts.trace_steps:
        return None, None
    worst = max(facts.communication, key=lambda c: c.exposed_transfer_ns)
    if worst.window_ns <= 0:
        return None, None
    exposed = (worst.exposed_transfer_ns + (worst.exposed_wait_ns or 0)) * part
    return exposed / facts.trace_steps, min(1.0, exposed / worst.window_ns)


def _evidence(found: GradientSyncs) -> dict[str, object]:
    return {
        "sets_per_optimizer_step": found.sets,
        "micro_batches_per_optimizer_step": found.passes,
        "all_reduces_per_set": found.calls,
        "optimizer_steps": found.optimizer_steps,
        "without_sync_before_step": found.unsynced,
    }
