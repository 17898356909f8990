"""WB401: communication that nothing hides takes part of every step.

What: the share of the window in which a collective moves data while the device computes nothing.
Why: transfers that run beside compute are free; exposed ones lengthen every step on every rank.
What to do: start collectives earlier and in smaller pieces (gradient buckets, prefetch of sharded
parameters), send fewer bytes (bf16 gradients, accumulation without a sync), or use a faster link.
When it is wrong: one rank alone cannot tell a transfer from waiting for a late rank, so its verdict
is "cannot tell"; waiting belongs to WB402, and buckets that are too small cost more than they hide.
"""

from workbench.findings.finding import CommunicationFacts, Facts, Finding, Severity
from workbench.findings.parallel_switch import hides_more
from workbench.units import share_text, time_text

CODE = "WB401"

WARNING_SHARE = 0.10
"""The TensorBoard plugin recommends from 10 % of communication on; here only its exposed part."""
CRITICAL_SHARE = 0.20
"""As TraceML grades waiting."""
ONLY_THE_LAST = 0.95
"""Own choice: of the exposed time of all buckets, the last one's share to be named alone."""
LEAST_STEPS_WARNING = 2
LEAST_STEPS_CRITICAL = 20

_ADVICE = (
    "Let collectives start earlier and run beside compute: smaller gradient buckets, prefetch of "
    "sharded parameters. Or send less: bf16 gradients, no sync on accumulation steps."
)


def exposed_communication(facts: Facts) -> Finding | None:
    """Fires when exposed transfer takes more than 10 % of the window of the worst device."""
    if any("busy" in v.voids for v in facts.violations):
        return None
    worst = max(facts.communication, key=lambda c: c.exposed_transfer_ns, default=None)
    if worst is None or worst.window_ns <= 0:
        return None
    share = worst.exposed_transfer_ns / worst.window_ns
    if share <= WARNING_SHARE or (facts.trace_steps or 0) < LEAST_STEPS_WARNING:
        return None
    return _finding(facts, worst, share)


def _finding(facts: Facts, worst: CommunicationFacts, share: float) -> Finding:
    alone = worst.exposed_wait_ns is None
    steps = facts.trace_steps or 1
    exposed = worst.exposed_transfer_ns / steps
    saving = exposed if alone else _bound(facts, exposed)  # without a late rank all of it may go
    step = worst.window_ns / steps
    if facts.step_ns:
        step = sum(facts.step_ns) / len(facts.step_ns)
        exposed, saving = min(exposed, step), min(saving, step)
    what = f"{time_text(exposed)} of each step"
    buckets = facts.buckets
    if alone and worst.ranks > 1:
        title = (
            f"Communication that nothing hides takes {share_text(share)} of the window; sends and "
            "receives do not tell the transfer from waiting for the other rank."
        )
        advice = (
            "Compare the compute of the ranks (run.imbalance): a pipeline waits for its slowest "
            "stage, and at its ends; more micro-batches make the ends shorter."
        )
    elif alone:
        title = (
            f"Communication that nothing hides takes {share_text(share)} of the window, but one "
            "rank alone cannot tell the transfer from waiting for a late rank."
        )
        advice = (
            "Open the traces of all ranks together (a folder with one file a rank): waiting ends "
            "with the late rank, and transfer can be hidden."
        )
    else:
        title = (
            f"Exposed communication: moving data that nothing hides takes {share_text(share)} of "
            f"the window ({what}){_which(facts)}."
        )
        advice = _ADVICE
    return Finding(
        code=CODE,
        title=title,
        verdict="cannot_tell" if alone else "yes",
        severity="info" if alone else _severity(share, steps),
        evidence={
            "exposed_transfer_us": worst.exposed_transfer_ns / 1000,
            "exposed_wait_us": None if alone else (worst.exposed_wait_ns or 0) / 1000,
            "window_us": worst.window_ns / 1000,
            "calls": worst.calls,
            "exposed_calls": worst.exposed_calls,
            "most_exposed": worst.largest,
            "most_exposed_us": worst.largest_exposed_ns / 1000,
            "buckets": None if buckets is None else buckets.buckets,
            "last_bucket_exposed_us": None if buckets is None else buckets.last_exposed_ns / 1000,
        },
        advice=advice,
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=step / (step - saving) if step > saving else None,
        setting=None if alone else hides_more(facts),
        rank=facts.rank,
        device=worst.device,
    )


def _which(facts: Facts) -> str:
    """That only the last of several buckets is exposed, where that is so."""
    found = facts.buckets
    if found is None or found.buckets < 2 or found.exposed_ns <= 0:
        return ""
    if found.last_exposed_ns < ONLY_THE_LAST * found.exposed_ns:
        return ""
    return f": only the last of {found.buckets} gradient buckets, which has no compute to hide it"


def _bound(facts: Facts, exposed: float) -> float:
    """What a step saves at most: no more than replaying it with communication hidden.

    The host or other work may come as late without the transfers, so not all of them is gained.
    """
    replayed = (facts.bounds_ns or {}).get("communication")
    return exposed if replayed is None else min(exposed, replayed)


def _severity(share: float, steps: int) -> Severity:
    critical = share >= CRITICAL_SHARE and steps >= LEAST_STEPS_CRITICAL
    return "critical" if critical else "warning"
