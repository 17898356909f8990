"""WB202: many small gaps between kernels that are already queued.

What: the device idles for a moment between one kernel and the next, although both were launched.
Why: starting a kernel costs the device a microsecond or more; with thousands of short kernels that
adds up, and neither the host nor the data are to blame.
What to do: fewer kernels: torch.compile fuses elementwise chains; CUDA graphs shorten the gaps,
where the kernels are not in graphs already.
When it is wrong: the spacing is the device's own and never goes to zero, so the bound is never
reached; and gaps between streams that wait for each other's events look the same. The bound is the
gaps alone: torch.compile also fuses kernels, and can gain more than that.
"""

from workbench.findings.finding import Facts, Finding
from workbench.findings.lost_time import worst_device
from workbench.findings.switching import fewer_launches
from workbench.units import share_text, time_text

CODE = "WB202"

NOTE_SHARE = 0.05
"""Own choice: healthy large-kernel training loses 1 to 3 % (HTA's and nanogpt's public traces)."""
WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""As for waiting (TraceML)."""
KERNEL_WAIT_NS = 30
"""Gaps up to this length Holistic Trace Analysis calls kernel wait: nobody can shorten them."""
SMALL_NS = 50_000
"""Own choice: a longer median is no spacing of kernels, but waiting for another stream."""
MOSTLY = 0.5
"""Own choice: what most of the gaps are, decides what is advised."""
_ADVICE = (
    "Run fewer kernels: torch.compile fuses elementwise chains, and CUDA graphs "
    '(torch.compile(mode="reduce-overhead")) space them more tightly.'
)
_IN_GRAPHS = (
    "The gaps lie inside CUDA graphs already, so only fewer kernels help: capture a graph of fused "
    "ones (torch.compile before capturing), or take a larger batch if memory allows."
)


def kernel_gaps(facts: Facts) -> Finding | None:
    """Fires when spacing between queued kernels takes more than 5 % of the steps that count."""
    found = worst_device(facts, ("kernel_gap",))
    if found is None:
        return None
    device, lost = found
    steady = device.steady
    if steady is None or lost.share <= NOTE_SHARE or not steady.steps:
        return None
    median = steady.gap_median_ns or 0.0
    if not KERNEL_WAIT_NS < median <= SMALL_NS:
        return None
    count = steady.gap_count / steady.steps
    in_graphs = steady.graph_gap_ns
    return Finding(
        code=CODE,
        title=f"Gaps between queued kernels take {share_text(lost.share)} of {lost.whole}: "
        f"{count:.0f} gaps of {time_text(median)} each (median).",
        verdict="yes",
        severity=lost.severity(WARNING_SHARE, CRITICAL_SHARE),
        evidence={
            "gaps_per_step": count,
            "median_gap_us": median / 1000,
            "gaps_us_per_step": lost.ns / steady.steps / 1000,
            "launches_per_step": device.launches_per_step,
            "inside_graphs_share": min(1.0, in_graphs / lost.ns) if lost.ns else None,
            "steps": lost.steps,
        },
        advice=_IN_GRAPHS if in_graphs > MOSTLY * lost.ns else _ADVICE,
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        setting=fewer_launches(facts),
        rank=facts.rank,
        device=device.index,
    )
