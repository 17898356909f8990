"""WB210: Python's garbage collection stops the loop.

What: time in collections during the steps, or idle time of the device behind them.
Why: a collection of the oldest generation looks at every object of the program, and nothing is
launched meanwhile.
What to do: gc.freeze() after set-up takes long-lived objects out of it; or gc.disable() and
gc.collect() every so many steps, the same steps on every rank.
When it is wrong: without collections memory in reference cycles grows, so watch memory after the
change.
"""

from workbench.findings.finding import Facts, Finding
from workbench.findings.lost_time import LostTime, worst_device
from workbench.units import number_text, share_text

CODE = "WB210"

NOTE_SHARE = 0.02
"""As the design's list of findings has it: below 2 % noise hides it."""
WARNING_SHARE = 0.05
CRITICAL_SHARE = 0.20
"""As for waiting (TraceML); the first is lower, since the remedy is one line."""


def garbage(facts: Facts) -> Finding | None:
    """Fires when collections take more than 2 % of the steps."""
    found = worst_device(facts, ("garbage_collection",))
    if found is not None:
        device, lost = found
        return _finding(facts, lost, device.index) if lost.share > NOTE_SHARE else None
    lost_on_cpu = None if facts.devices else _recorded(facts)
    if lost_on_cpu is None or lost_on_cpu.share <= NOTE_SHARE:
        return None
    return _finding(facts, lost_on_cpu, None)


def _recorded(facts: Facts) -> LostTime | None:
    """What the collections of the steps of record took, measured without the profiler."""
    spent = (facts.garbage_collection or {}).get("ns")
    if not isinstance(spent, list) or not facts.step_ns or facts.voids("devices"):
        return None
    steps, whole = len(facts.step_ns), sum(facts.step_ns)
    lost = min(sum(spent), whole)
    return LostTime(
        ns=lost,
        share=lost / whole if whole else 0.0,
        steps=steps,
        per_step_ns=lost / steps,
        step_ns=whole / steps,
        saving_ns=lost / steps,
    )


def _finding(facts: Facts, lost: LostTime, device: int | None) -> Finding:
    counts = (facts.garbage_collection or {}).get("collections")
    oldest = counts[-1] if isinstance(counts, list) and counts else None
    often = (
        f", {number_text(oldest / len(facts.step_ns))} full collections a step"
        if oldest and facts.step_ns
        else ""
    )
    return Finding(
        code=CODE,
        title=f"Garbage collection takes {share_text(lost.share)} of {lost.whole}{often}.",
        verdict="yes",
        severity=lost.severity(WARNING_SHARE, CRITICAL_SHARE),
        evidence={
            "collections_by_generation": counts,
            "collection_us_per_step": None if not lost.steps else lost.ns / lost.steps / 1000,
            "steps": lost.steps,
        },
        advice="Call gc.freeze() after set-up, or gc.disable() and gc.collect() every so many "
        "steps (the same ones on every rank), and watch memory.",
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        rank=facts.rank,
        device=device,
    )
