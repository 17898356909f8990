"""WB902: the machine is too noisy for small differences.

What: blocks of the same steps, measured before and after the profiled window, differ from each
other, or other processes take the processor.
Why: a change smaller than this spread cannot be told from chance, whatever its average says.
What to do: stop other work on the machine, measure more steps, or look only at larger effects.
When it is wrong: a program whose steps really drift (growing batches, a changing curriculum)
shows the same spread on a quiet machine.
"""

from workbench.findings.finding import Facts, Finding, Severity
from workbench.units import share_text, spread_text

CODE = "WB902"

NOTE_SPREAD = 0.05
"""Own choice: below it, the 10 % changes that people ask about are still visible."""
WARNING_SPREAD = 0.10
"""Only changes above 10 % are credible at such noise (pytorch/benchmark, pull request 363)."""
OTHERS_SHARE = 0.25
"""Own choice: share of the usable processors that other processes may take before we say so."""


def noisy_machine(facts: Facts) -> Finding | None:
    """Fires on a large A/A spread of step times, or on competing load."""
    spread = facts.noise_floor
    measured = (facts.load or {}).get("others_cpu_share")
    others = float(measured) if isinstance(measured, int | float) else None
    loud = spread is not None and spread > NOTE_SPREAD
    crowded = others is not None and others > OTHERS_SHARE
    if not (loud or crowded):
        return None
    severity: Severity = "warning" if spread is not None and spread > WARNING_SPREAD else "info"
    said = []
    if spread is not None and loud:
        said.append(f"identical steps differ by {spread_text(spread)} between two halves")
    if crowded:
        said.append(f"other processes use {share_text(others)} of the processors")
    return Finding(
        code=CODE,
        title="The machine is noisy: " + " and ".join(said) + ".",
        verdict="yes",
        severity=severity,
        evidence={
            "noise_floor": spread,
            "block_medians_us": _microseconds(facts.block_medians_ns),
            "others_cpu_share": others,
        },
        advice="Differences smaller than this are chance: close other work, or measure more steps.",
        rank=facts.rank,
    )


def _microseconds(values: tuple[float, ...] | None) -> list[float] | None:
    return None if values is None else [value / 1000 for value in values]
