"""WB208: steps are slow whenever they meet a new input shape.

What: the first step of a shape takes much longer than later steps of the same shape.
Why: kernels are searched, loaded or compiled, and workspaces allocated, for every new size.
What to do: pad or bucket inputs to a few sizes, or stop the search for sizes that keep changing
(torch.backends.cudnn.benchmark = False).
When it is wrong: a larger input is slower by itself; so a first step is compared only with later
steps of the same shape, and where no shape comes twice nothing is said.
"""

from workbench.findings.finding import Facts, Finding
from workbench.findings.lost_time import LostTime
from workbench.findings.switching import no_search
from workbench.units import share_text, significant

CODE = "WB208"

LEAST_PAIRS = 2
LEAST_NEW = 3
"""Own choices: fewer first sights, or fewer that were seen again, are chance."""
NEW_AMONG_SLOW = 0.8
"""Own choice, as for naming a cause (TraceML): so many of the slow steps must be first sights."""
WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""As for waiting (TraceML)."""
NOTE_SHARE = 0.02
"""Own choice: noise hides less."""


def new_shapes(facts: Facts) -> Finding | None:
    """Fires when slow steps and first sights of a shape coincide."""
    seen = facts.shapes_seen
    if seen is None or seen.usual_ns is None or seen.ratio is None:
        return None
    if seen.new_steps < LEAST_NEW or seen.pairs < LEAST_PAIRS or seen.slow_pairs < seen.pairs:
        return None
    if seen.slow_new_steps < NEW_AMONG_SLOW * seen.slow_steps:
        return None
    whole = seen.usual_ns * seen.steps + seen.excess_ns
    per_step, step = seen.excess_ns / seen.steps, whole / seen.steps
    lost = LostTime(
        ns=seen.excess_ns,
        share=min(1.0, seen.excess_ns / whole) if whole > 0 else 0.0,
        steps=seen.steps,
        per_step_ns=per_step,
        step_ns=step,
        saving_ns=min(per_step, step),
    )
    if lost.share <= NOTE_SHARE:
        return None
    return Finding(
        code=CODE,
        title=f"New input shapes are expensive: {seen.new_steps} of {seen.steps} steps saw a new "
        f"shape, and the first step of a shape takes {significant(seen.ratio)} times as long as "
        f"later ones ({share_text(lost.share)} of the time).",
        verdict="yes",
        severity=lost.severity(WARNING_SHARE, CRITICAL_SHARE),
        evidence={
            "steps": seen.steps,
            "steps_with_new_shape": seen.new_steps,
            "slow_steps": seen.slow_steps,
            "slow_steps_with_new_shape": seen.slow_new_steps,
            "shapes_seen_again": seen.pairs,
            "first_to_later_ratio": seen.ratio,
            "usual_step_us": seen.usual_ns / 1000,
        },
        advice="Pad or bucket inputs to a few sizes; where sizes must change, set "
        "torch.backends.cudnn.benchmark = False or compile with dynamic=True.",
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        setting=no_search(facts),
        rank=facts.rank,
    )
