"""WB901: the profile fails its own checks, so some numbers carry no verdict.

What: launches without kernels, kernels without launches, shifted clocks, overlong records, a file
cut or repaired on the way in.
Why: a verdict from a broken recording sends people to fix the wrong thing.
What to do: record again as the message of each violation says; numbers that no violation voids
still hold.
When it is wrong: constant clock offsets below 1 ms, programmatic launches and an incomplete last
step are legal and do not fire it.
"""

from workbench.findings.finding import Facts, Finding

CODE = "WB901"


def untrusted_profile(facts: Facts) -> Finding | None:
    """Fires when the trace's own trust check failed; says what that makes void."""
    if facts.trust_ok:
        return None
    violations = [v for v in facts.violations if v.voids] or list(facts.violations)
    worst = max(violations, key=lambda v: (v.share or 0.0, v.count), default=None)
    void = sorted({name for v in violations for name in v.voids})
    return Finding(
        code=CODE,
        title="This profile fails its own checks"
        + (f": {worst.message}" if worst is not None else "")
        + (
            f" Not to be trusted: {', '.join(name.replace('_', ' ') for name in void)}."
            if void
            else ""
        ),
        verdict="yes",
        severity="warning",
        evidence={
            "violations": {v.code: v.count for v in violations},
            "share_of_device_time": max(
                (v.share for v in violations if v.share is not None), default=None
            ),
            "voids": void,
        },
        advice="Record the profile again; until then read only the numbers that are not voided.",
        rank=facts.rank,
    )
