"""WB304: weights are cast to a lower precision several times a pass.

What: casts of weights under autocast against the number of weights.
Why: autocast keeps a cast weight only until its outermost region ends; a region around each layer
or call casts the same weight again and again.
What to do: one `with torch.autocast(...)` around the whole forward pass, with cache_enabled left
on, or weights kept in bf16.
When it is wrong: activation checkpointing casts each weight once more in the backward pass, which
is why twice is tolerated; weights that need no gradient are never cached and are not counted.
"""

from workbench.findings.finding import Facts, Finding, Severity
from workbench.findings.lost_time import LEAST_STEPS_WARNING
from workbench.units import count_text, share_text, significant

CODE = "WB304"

LARGEST_RATIO = 2.0
"""One cast a weight is right, two with activation checkpointing; a region around each of ten calls
made 21 casts of 3 (Lightning, issue 19950)."""
NOTE_SHARE = 0.01
"""Own choice: below it the casts are not worth a change."""
WARNING_SHARE = 0.05
"""Own choice: half of what is a warning elsewhere, since the remedy is to move one line."""


def repeated_casts(facts: Facts) -> Finding | None:
    """Fires when weights are cast more than twice for each gradient that they get."""
    found = facts.casts
    if found is None or not found.weights or found.time_ns <= 0:
        return None
    ratio = found.casts / found.weights
    spent = found.host_ns if found.device_ns is None else max(found.device_ns, found.host_ns)
    needless = spent * (1 - 1 / ratio) if ratio > 1 else 0.0
    share = min(1.0, needless / found.time_ns)
    if ratio <= LARGEST_RATIO or share <= NOTE_SHARE:
        return None
    enough = share >= WARNING_SHARE and found.steps >= LEAST_STEPS_WARNING
    severity: Severity = "warning" if enough else "info"
    per = max(found.steps, 1)
    return Finding(
        code=CODE,
        title=f"Weights are cast {significant(ratio)} times for each gradient: "
        f"{count_text(round(found.casts / per))} casts"
        f"{' a step' if found.steps else ''} where {count_text(round(found.weights / per))} would "
        f"do. The needless ones take at most {share_text(share)} of the step.",
        verdict="yes",
        severity=severity,
        evidence={
            "casts_per_step": found.casts / per,
            "weights_per_step": found.weights / per,
            "host_us_per_step": found.host_ns / per / 1000,
            "device_us_per_step": None if found.device_ns is None else found.device_ns / per / 1000,
            "steps": found.steps,
        },
        advice="Put one `with torch.autocast(...)` around the whole forward pass instead of one "
        "around each layer or call: its cache lives as long as the outermost region.",
        share_of_window=share,
        saving_ns_per_step_at_most=needless / found.steps if found.steps else None,
        setting={"autocast_cache": True}
        if facts.effective.get("autocast_cache") is False
        else None,
        rank=facts.rank,
    )
