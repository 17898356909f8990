"""WB307: memory grows from step to step, because one autocast region keeps the cast weights.

What: live memory at the ends of steps, and the memory that casts of autocast took in a step and did
not give back in it.
Why: autocast keeps the cast of each weight until its outermost region ends. Around a whole loop
that makes new parameters (generation, meta-learning, ensembles) the copies pile up.
What to do: end the region in every step, or switch its cache off:
torch.autocast(..., cache_enabled=False).
When it is wrong: steps that warm up a cache of their own grow too, but not by casts; without memory
records, or with fewer than five steps, nothing can be said.
"""

from workbench.findings.finding import Facts, Finding
from workbench.units import bytes_text, number_text, share_text

CODE = "WB307"

LEAST_RISING = 0.80
"""Own choice: of the steps; batches that come and go do not rise that steadily."""
LEAST_PART = 0.30
"""Of the growth, what casts must take to be named as its cause: a third, where each cast to two
bytes also keeps the four-byte weight alive that it was made from."""
LEAST_SHARE = 0.01
"""Own choice: growth over the recorded steps, as a share of the memory at their end."""


def growing_casts(facts: Facts) -> Finding | None:
    """Fires when memory rises steadily and mostly by casts that were kept."""
    found = facts.kept_casts
    if found is None or found.growth_bytes <= 0 or found.live_bytes <= 0:
        return None
    ends = found.steps - 1
    part = found.kept_bytes / found.growth_bytes
    grown = found.growth_bytes * ends / found.live_bytes
    if found.rising / ends < LEAST_RISING or part < LEAST_PART or grown < LEAST_SHARE:
        return None
    return Finding(
        code=CODE,
        title=f"Memory grows by {bytes_text(found.growth_bytes)} a step: autocast keeps "
        f"{bytes_text(found.kept_bytes)} of cast weights ({share_text(min(1.0, part))} of it), and "
        "what they were made from, because its region stays open from step to step. All of it is "
        "freed when the region ends.",
        verdict="yes",
        severity="warning",
        evidence={
            "growth_bytes_per_step": found.growth_bytes,
            "kept_cast_bytes_per_step": found.kept_bytes,
            "kept_casts_per_step": number_text(found.kept_casts),
            "live_bytes": found.live_bytes,
            "steps": found.steps,
        },
        advice="Put `with torch.autocast(...)` inside the loop, around one forward pass, or give "
        "it cache_enabled=False.",
        setting={"autocast_cache": False},
        rank=facts.rank,
    )
