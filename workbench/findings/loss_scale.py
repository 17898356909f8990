"""WB305: gradient scaling skips steps, or its scale keeps falling.

What: the scale of fp16 gradients over the run's optimizer steps, and the steps that were skipped
because a gradient overflowed; in a trace from elsewhere, steps that checked gradients and ran no
optimizer.
Why: a skipped step has computed forward and backward for nothing. The first few are how the scale
finds its place (it halves from 65536); later ones mean that it does not fit, or that the loss
itself is infinite or NaN, which no scale cures.
What to do: look at the losses of skipped steps; use bf16, which has the range of fp32 and needs no
scale; clip gradients after unscaling; start with a lower scale where only the first steps suffer.
When it is wrong: once every 2000 steps the scale doubles and may overflow once, which is how it is
meant to work; the first hundred steps are not judged where there are more.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from workbench.findings.finding import Facts, Finding, Severity
from workbench.findings.lost_time import LEAST_STEPS_CRITICAL
from workbench.units import count_text, number_text, share_text

CODE = "WB305"

SETTLED = 100
"""Own choice, with the next: more than one step in a hundred skipped after the hundredth."""
SKIPPED_SHARE = 0.01
ALL_SHARE = 0.90
"""Own choice: hardly any step trains."""
WINDOWS = 2
"""Own choice: growth windows over which a scale that only falls cannot be chance."""
LEAST_SCALE = 1.0
"""Below it gradients are scaled down: they overflow by themselves."""


def loss_scale(facts: Facts) -> Finding | None:
    """Fires on skipped steps after the first hundred, or on a scale that finds no place."""
    recorded = facts.loss_scale
    if recorded is not None and recorded.get("steps"):
        return _of_the_record(facts, recorded)
    seen = facts.scaled_steps
    if seen is None or not seen.skipped:
        return None
    return _judged(
        facts,
        steps=seen.checked,
        skipped=seen.skipped,
        late=None,
        said="in the trace (checked gradients, and no optimizer behind them)",
        evidence={"source": "trace"},
        falling=seen.last_skipped and seen.skipped == seen.checked,
    )


def _of_the_record(facts: Facts, recorded: Mapping[str, Any]) -> Finding | None:
    steps, at = int(recorded["steps"]), list(recorded.get("skipped_at") or ())
    scales: Sequence[Sequence[float]] = recorded.get("scales") or ()
    late = [step for step in at if step >= SETTLED] if steps > SETTLED else None
    window = WINDOWS * int(recorded.get("growth_interval") or 2000)
    last = scales[-1][1] if scales else None
    before = [scale for step, scale in scales if step <= steps - window]
    falling = bool(before) and last is not None and last < before[-1]
    falling &= not any(b[1] > a[1] for a, b in pairwise(scales))
    if last is not None and last < LEAST_SCALE:
        falling = True
    return _judged(
        facts,
        steps=steps,
        skipped=len(at),
        late=None if late is None else len(late) / (steps - SETTLED),
        said="",
        evidence={
            "source": "recorded by the training",
            "first_scale": scales[0][1] if scales else None,
            "last_scale": last,
            "skipped_after_step_100": None if late is None else len(late),
        },
        falling=falling,
    )


def _judged(
    facts: Facts,
    *,
    steps: int,
    skipped: int,
    late: float | None,
    said: str,
    evidence: dict[str, Any],
    falling: bool,
) -> Finding | None:
    share = skipped / steps
    lost = share >= ALL_SHARE
    settled = late is not None and late > SKIPPED_SHARE
    if not lost and not settled and not falling:
        return _still_seeking(facts, steps, skipped, evidence) if late is None else None
    where = f" {said}" if said else ""
    told = f"{count_text(skipped)} of {count_text(steps)} steps were skipped{where}"
    if settled and late is not None:
        told += f", {share_text(late)} of those after the first {SETTLED}"
    if falling and evidence.get("last_scale") is not None:
        told += f"; the scale only fell, to {evidence['last_scale']:g}"
    severity: Severity = "critical" if lost and steps >= LEAST_STEPS_CRITICAL else "warning"
    step = None if not facts.step_ns else sum(facts.step_ns) / len(facts.step_ns)
    wasted = late if settled and not lost else share
    return Finding(
        code=CODE,
        title=f"fp16 gradients overflow: {told}. A skipped step trains nothing.",
        verdict="yes",
        severity=severity,
        evidence={"steps": steps, "skipped": skipped, **evidence},
        advice="Look at the losses of the skipped steps: infinite or NaN losses are no matter of "
        "scale. Use bf16 where it is native, which needs no scaling; or clip gradients after "
        "unscaling them.",
        share_of_window=wasted,
        saving_ns_per_step_at_most=None if step is None or wasted is None else step * wasted,
        setting=_bf16(facts),
        rank=facts.rank,
    )


def _still_seeking(
    facts: Facts, steps: int, skipped: int, evidence: dict[str, Any]
) -> Finding | None:
    """Skipped steps in a short run: the scale may just not have found its place yet."""
    if skipped / steps <= SKIPPED_SHARE or steps < 2:
        return None
    return Finding(
        code=CODE,
        title=f"{number_text(skipped)} of {count_text(steps)} steps were skipped because fp16 "
        f"gradients overflowed. In the first {SETTLED} steps that is how the scale finds its "
        "place; whether it has, this run is too short to tell.",
        verdict="cannot_tell",
        severity="info",
        evidence={"steps": steps, "skipped": skipped, **evidence},
        advice="Profile more than a hundred steps, or start with a lower scale: "
        "torch.amp.GradScaler(init_scale=...).",
        share_of_window=skipped / steps,
        setting=_lower_start(facts, evidence.get("last_scale")),
        rank=facts.rank,
    )


def _lower_start(facts: Facts, last: float | None) -> dict[str, Any] | None:
    """Begin where the scale has got to, where a switch scales."""
    if facts.effective.get("precision") != "fp16" or not last:
        return None
    return {"precision": "fp16", "loss_scale": float(last)}


def _bf16(facts: Facts) -> dict[str, Any] | None:
    """The switch to bf16, unless it is known not to be native here."""
    known = next((each for each in facts.dtypes if each.get("dtype") == "bf16"), None)
    return None if known is not None and known.get("native") is False else {"precision": "bf16"}
