"""WB303: matrix products in half precision have sizes that are no multiple of 8.

What: products of fp16 or bf16 whose rows lie a number of elements apart that is not divisible by 8,
weighted by their time.
Why: tensor cores take such sizes whole; others are padded inside, or run on slower kernels.
What to do: pad the dimension, such as a vocabulary of 50 257 to 50 304, and measure.
When it is wrong: newer libraries pad by themselves, so the typical gain is 0 to 10 % and sometimes
none; the bound is the whole time of these products. Products with a size below 8 are left out: they
wait for memory. Without recorded shapes nothing can be said.
"""

from workbench.analysis.matmul_shapes import MatmulShapes, Misaligned
from workbench.findings.finding import Facts, Finding, Severity
from workbench.findings.lost_time import LEAST_STEPS_WARNING
from workbench.units import share_text

CODE = "WB303"

NOTE_SHARE = 0.05
"""Own choice: at a typical gain of up to 10 %, products below it gain less than 0.5 % of a step."""
WARNING_SHARE = 0.30
"""Own choice: from here on a typical gain reaches 3 % of a step."""
UNSEEN_SHARE = 0.30
"""Own choice: from this share of half-precision products on, missing shapes are worth a line."""
MOST_SHAPES = 3


def misaligned_matmul(facts: Facts) -> Finding | None:
    """Fires on misaligned half-precision products by their share of time; says if shapes lack."""
    found = facts.matmuls
    if found is None or found.time_ns <= 0 or facts.voids("operator_device_time"):
        return None
    if not found.recorded:
        return _cannot_tell(facts, found)
    lost = min(sum(each.ns for each in found.misaligned), found.time_ns)
    share = lost / found.time_ns
    if share <= NOTE_SHARE:
        return None
    worst = found.misaligned[0]
    saving = lost / found.steps if found.steps else None
    enough = share >= WARNING_SHARE and found.steps >= LEAST_STEPS_WARNING
    severity: Severity = "warning" if enough else "info"
    what = "device time" if facts.devices else "step time"
    return Finding(
        code=CODE,
        title=f"Half-precision products with sizes that are no multiple of 8 take "
        f"{share_text(share)} of the {what}, most of all {_text(worst)} for its {_bad(worst)}. "
        "A typical gain from padding is 0 to 10 %: test it.",
        verdict="yes",
        severity=severity,
        evidence={
            "products": [f"{_text(each)}, {each.calls} calls" for each in found.misaligned][
                :MOST_SHAPES
            ],
            "misaligned_us": lost / 1000,
            "half_precision_us": None if found.half_ns is None else found.half_ns / 1000,
            "steps": found.steps,
        },
        advice=f"Pad {_bad(worst)} to the next multiple of 8 (for a vocabulary, of 64) and "
        "compare whole steps.",
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        rank=facts.rank,
    )


def _cannot_tell(facts: Facts, found: MatmulShapes) -> Finding | None:
    if found.half_ns is None or found.half_ns / found.time_ns <= UNSEEN_SHARE:
        return None
    share = min(1.0, found.half_ns / found.time_ns)
    return Finding(
        code=CODE,
        title=f"Half-precision products take {share_text(share)} of the device time, but shapes "
        "were not recorded: whether their sizes suit the fast kernels cannot be told.",
        verdict="cannot_tell",
        severity="info",
        evidence={"half_precision_us": found.half_ns / 1000, "shapes_recorded": False},
        advice="Record with shapes: Record(shapes=True), or torch.profiler with "
        "record_shapes=True.",
        rank=facts.rank,
    )


def _text(each: Misaligned) -> str:
    m, k, n = each.sizes
    return f"{each.operator} ({m} × {k}) · ({k} × {n})"


def _bad(each: Misaligned) -> str:
    return " and ".join(str(size) for size in each.bad)
