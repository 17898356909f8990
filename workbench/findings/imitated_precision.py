"""WB302: the step computes in a type that this device only imitates.

What: the type of products and convolutions, against its time on this device, measured by tiny ones
that took turns with fp32.
Why: without instructions for a type the library converts to fp32, multiplies and converts back;
that was measured up to 500 times slower (pytorch #146508), and grows with the size.
What to do: go back to fp32, or to a type that is native here; `workbench doctor` lists them.
When it is wrong: where memory is what counts, a slower type may still be worth it; the factor was
measured on small matrices and one thread, so the bound is all time of these products and half of
all other (casts, and small operators in the same type).
"""

from collections.abc import Mapping
from typing import Any

from workbench.findings.finding import Facts, Finding, Severity
from workbench.findings.lost_time import LEAST_STEPS_CRITICAL, LEAST_STEPS_WARNING
from workbench.units import share_text

CODE = "WB302"

SLOWER = 1.10
"""Own choice: what tiny products differ by on a busy machine is not called slower."""
WARNING_RATIO = 1.5
"""Own choice."""
CRITICAL_RATIO = 5.0
"""Own choice: no saving of memory is worth that."""
SETTINGS = {"bf16": ("bf16", "bf16_pure"), "fp16": ("fp16",), "fp8": ("fp8",)}


def imitated_precision(facts: Facts) -> Finding | None:
    """Fires when the type in use was measured slower than fp32 on this very device."""
    probes = {each.get("dtype"): each for each in facts.dtypes}
    worst = max(
        ((dtype, probes[dtype]) for dtype in _used(facts) if dtype in probes),
        key=lambda pair: _factor(pair[1]) or 0.0,
        default=None,
    )
    if worst is None:
        return None
    dtype, probe = worst
    factor = _factor(probe)
    if factor is None:
        return _not_measured(facts, dtype, probe) if probe.get("native") is False else None
    return _finding(facts, dtype, probe, factor) if factor > SLOWER else None


def _finding(facts: Facts, dtype: str, probe: Mapping[str, Any], factor: float) -> Finding:
    ns, steps = _spent(facts, dtype)
    step = None if facts.step_ns is None else sum(facts.step_ns) / len(facts.step_ns)
    time = facts.matrix_work[0].time_ns if facts.matrix_work else 0
    # The factor grows with the size, and casts and imitated small operators go as well.
    saving = None if ns is None or not steps else (ns + max(0, time - ns) / 2) / steps
    if saving is not None and step is not None:
        saving = min(saving, step)
    share = min(1.0, ns / time) if ns is not None and time > 0 else None
    count = len(facts.step_ns or ())
    severity: Severity = "info"
    if factor >= WARNING_RATIO and count >= LEAST_STEPS_WARNING:
        severity = "warning"
    if factor >= CRITICAL_RATIO and count >= LEAST_STEPS_CRITICAL:
        severity = "critical"
    native = {True: "which it has instructions for", False: "which it only imitates"}
    why = native.get(probe.get("native"), "of which nobody tells whether it is native")  # type: ignore[arg-type]
    part = "" if share is None else f" They take {share_text(share)} of the step."
    return Finding(
        code=CODE,
        title=f"The step computes in {dtype}, {why}: products and convolutions take up to "
        f"{factor:.2g} × as long as in fp32 on this device (measured).{part}",
        verdict="yes",
        severity=severity,
        evidence={
            "dtype": dtype,
            "native": probe.get("native"),
            "matmul_ratio": probe.get("matmul_ratio"),
            "convolution_ratio": probe.get("convolution_ratio"),
            "time_us_per_step": None if ns is None or not steps else ns / steps / 1000,
            "steps": count or None,
        },
        advice=f"Use {_better(facts, dtype)}: what is lost in time is rarely worth the memory.",
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=step / (step - saving) if step and saving and step > saving else None,
        setting={"precision": _better(facts, dtype)},
        rank=facts.rank,
    )


def _not_measured(facts: Facts, dtype: str, probe: Mapping[str, Any]) -> Finding:
    return Finding(
        code=CODE,
        title=f"The step computes in {dtype}, for which this device has no instructions; what that "
        f"costs was not measured ({probe.get('reason') or 'no reason is known'}).",
        verdict="cannot_tell",
        severity="info",
        evidence={"dtype": dtype, "native": False, "matmul_ratio": None},
        advice="Compare a few steps in fp32.",
        setting={"precision": "fp32"},
        rank=facts.rank,
    )


def _used(facts: Facts) -> list[str]:
    """Types below fp32 in which matrix work was seen, else the one that was switched on."""
    seen = {dtype for work in facts.matrix_work for (_, dtype, _), ns in work.ns.items() if ns}
    found = [dtype for dtype in SETTINGS if dtype in seen]
    if found or any(dtype for dtype in seen):
        return found
    switched = facts.effective.get("precision")
    return [dtype for dtype, names in SETTINGS.items() if switched in names]


def _spent(facts: Facts, dtype: str) -> tuple[int | None, int]:
    if not facts.matrix_work:
        return None, 0
    work = facts.matrix_work[0]
    return work.total(dtypes=frozenset({dtype})), work.steps


def _factor(probe: Mapping[str, Any]) -> float | None:
    ratios = [probe.get(name) for name in ("matmul_ratio", "convolution_ratio")]
    return max((ratio for ratio in ratios if ratio is not None), default=None)


def _better(facts: Facts, dtype: str) -> str:
    """bf16 where it is native and not slower, else fp32."""
    for each in facts.dtypes:
        factor = _factor(each)
        if each.get("dtype") == "bf16" != dtype and each.get("native") and factor is not None:
            return "bf16" if factor <= 1 else "fp32"
    return "fp32"
