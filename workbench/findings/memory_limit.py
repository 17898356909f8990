"""WB501: memory grows from step to step, is nearly full, or validation holds more than training.

What: live bytes of every step, at most and in the middle, and the peak against the device's memory;
the peak in ranges named validation against that of forward, backward and optimizer.
Why: what a step keeps is added to all steps before it, until one fails: losses or outputs kept
with their graphs, lists of tensors, caches without a bound. A peak near the limit fails with the
first longer batch. Validation under autograd keeps activations that no backward pass frees.
What to do: keep numbers (loss.item(), output.detach().cpu()) instead of tensors; near the limit a
smaller batch, checkpointing or half precision. A recording with Record(memory=True, stacks=True)
names the line.
When it is wrong: inputs that grow by design make steps grow too; a cache that still fills rises and
then stays. Both the worst and the median step must rise, and by more than chance; fewer than five
steps tell nothing.
"""

from workbench.findings.finding import Facts, Finding
from workbench.findings.growing_casts import growing_casts
from workbench.units import bytes_text, number_text, share_text

CODE = "WB501"

NEAR_LIMIT = 0.90
"""Of the device's memory, torch-tb-profiler."""
LEAST_SHARE = 0.01
"""Own choice: growth over the recorded steps, as a share of the peak; less is harmless."""
LEAST_STEPS_CRITICAL = 20
HALF = 0.5
"""Only of what keeps so much of the growth is it said that it keeps most."""


def memory_limit(facts: Facts) -> Finding | None:
    """Fires when the worst and the median step both rise, or the peak is near the limit."""
    return _growing(facts) or _validation(facts) or _near(facts)


def _validation(facts: Facts) -> Finding | None:
    """Validation that holds more than training, and records what only backward needs."""
    found = facts.memory_pressure
    if found is None or found.training_peak_bytes is None or not found.validation_autograd:
        return None
    most, training = found.validation_peak_bytes or 0, found.training_peak_bytes
    if most <= training:
        return None
    return Finding(
        code=CODE,
        title=f"Validation holds {bytes_text(most)} of {found.device} at its peak, training "
        f"{bytes_text(training)}: it keeps activations for a backward pass that never comes.",
        verdict="yes",
        severity="warning",
        evidence={
            "validation_peak_bytes": most,
            "training_peak_bytes": training,
            "autograd_in_validation": True,
        },
        advice="Validate under torch.no_grad() or torch.inference_mode(), with model.eval(), and "
        "keep numbers, not outputs.",
        rank=facts.rank,
    )


def _growing(facts: Facts) -> Finding | None:
    found = facts.memory_pressure
    if found is None or not found.grows or found.peak_bytes <= 0:
        return None
    over_steps = found.bytes_per_step * (found.steps - 1)
    if over_steps < LEAST_SHARE * found.peak_bytes or growing_casts(facts) is not None:
        return None
    part = "most" if found.largest_share >= HALF else share_text(found.largest_share)
    what = f", {part} of it by {found.largest}" if found.largest else ""
    left = None if found.limit_bytes is None else found.limit_bytes - found.peak_bytes
    until = ""
    if left is not None and left > 0:
        until = f" After {number_text(left // found.bytes_per_step)} more steps it is full."
    return Finding(
        code=CODE,
        title=f"Memory of {found.device} grows by {bytes_text(found.bytes_per_step)} a step"
        f"{what}.{until}",
        verdict="yes",
        severity="critical" if found.steps >= LEAST_STEPS_CRITICAL else "warning",
        evidence={
            "growth_bytes_per_step": found.bytes_per_step,
            "worst_bytes_per_step": found.worst_bytes_per_step,
            "median_bytes_per_step": found.median_bytes_per_step,
            "chance": found.chance,
            "steps": found.steps,
            "peak_bytes": found.peak_bytes,
            "grows_in": found.largest or None,
            "grows_there_share": found.largest_share if found.largest else None,
        },
        advice="Keep numbers, not tensors, from step to step: loss.item() or "
        "output.detach().cpu(); bound what caches.",
        rank=facts.rank,
    )


def _near(facts: Facts) -> Finding | None:
    found = facts.memory_pressure
    if found is None or not found.limit_bytes:
        return None
    share = found.peak_bytes / found.limit_bytes
    if share <= NEAR_LIMIT:
        return None
    return Finding(
        code=CODE,
        title=f"{found.device} is {share_text(min(share, 1.0))} full at the peak: "
        f"{bytes_text(found.peak_bytes)} of {bytes_text(found.limit_bytes)}.",
        verdict="yes",
        severity="warning",
        evidence={"peak_bytes": found.peak_bytes, "device_bytes": found.limit_bytes},
        advice="A longer batch may fail: a smaller batch with accumulation, checkpointing, or "
        "bf16 leave room.",
        rank=facts.rank,
    )
