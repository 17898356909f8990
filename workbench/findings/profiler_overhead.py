"""WB903: the profiler itself stops the device inside the window.

What: idle time while the profiler flushes its buffers, starts, stops or marks a step.
Why: that part of the idle time is not the program's, and times under the profiler are longer than
real ones.
What to do: record less (no stacks, no shapes, fewer steps) when the share disturbs; step times of
record are measured without the profiler and do not contain it.
When it is wrong: the profiler's cost inside each operator cannot be seen as idle time, so this is
the least of it; the overhead ratio of a Run says all of it.
"""

from workbench.findings.finding import Facts, Finding
from workbench.findings.lost_time import worst_device
from workbench.units import share_text, significant

CODE = "WB903"

NOTE_SHARE = 0.02
"""As the design's list of findings has it: informational from 2 % on."""


def profiler_overhead(facts: Facts) -> Finding | None:
    """Fires, as a note, when the profiler's own work takes more than 2 % of the window."""
    found = worst_device(facts, ("profiler",))
    if found is None or found[1].share <= NOTE_SHARE:
        return None
    device, lost = found
    ratio = facts.overhead_ratio
    whole = (
        f" A step under the profiler takes {significant(ratio)} times a step without it."
        if ratio is not None
        else ""
    )
    return Finding(
        code=CODE,
        title=f"The profiler itself stops the device for {share_text(lost.share)} of "
        f"{lost.whole}.{whole}",
        verdict="yes",
        severity="info",
        evidence={
            "profiler_us": lost.ns / 1000,
            "overhead_ratio": ratio,
            "steps": lost.steps,
        },
        advice="Leave this part out when you judge the program; record fewer steps, no stacks and "
        "no shapes to make it smaller.",
        share_of_window=lost.share,
        rank=facts.rank,
        device=device.index,
    )
