"""WB209: the device waits for Python code outside the framework's operators.

What: idle time during which the launching thread runs no operator of the framework: the loop's own
Python, logging, metrics, conversions, or another library.
Why: the device gets its next work only after that code has ended.
What to do: move it out of the step, do it only every so many steps, or in another thread or
process; record with stacks (Record(stacks=True)) to see which line it is.
When it is wrong: recorded stacks slow Python down several times, so the loss is smaller than shown
where no step time of record is known; and a library that no record covers is counted here too.
"""

from workbench.findings.finding import DeviceFacts, Facts, Finding
from workbench.findings.lost_time import LostTime, worst_device
from workbench.units import share_text

CODE = "WB209"

CAUSES = ("host_python", "host_other")
WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""As for waiting (TraceML)."""


def host_code(facts: Facts) -> Finding | None:
    """Fires when host code outside operators takes more than 10 % of the steps.

    Idle time of these causes lies before its next launch, so the queue is empty then, however
    full it may be for the other launches: one pause a step is one launch of thousands.
    """
    found = worst_device(facts, CAUSES)
    if found is None:
        return None
    device, lost = found
    if lost.share <= WARNING_SHARE or not lost.steps:
        return None
    return _finding(facts, device, lost)


def _finding(facts: Facts, device: DeviceFacts, lost: LostTime) -> Finding:
    steady = device.steady
    assert steady is not None
    stacks = steady.by_cause.get("host_python") is not None
    places = (*steady.places["host_python"], *steady.places["host_other"])
    where = f", most of it in {places[0][0]}" if places else ""
    return Finding(
        code=CODE,
        title=f"The device idles {share_text(lost.share)} of {lost.whole} while the host runs "
        f"code outside any operator{where}.",
        verdict="yes",
        severity=lost.severity(WARNING_SHARE, CRITICAL_SHARE),
        evidence={
            "idle_us_per_step": lost.ns / lost.steps / 1000,
            "ranges_us": {name: ns / 1000 for name, ns in places},
            "empty_queue_share": device.empty_queue_share,
            "stacks_recorded": stacks,
            "steps": lost.steps,
        },
        advice="Move this code out of the step, do it only every so many steps, or in another "
        "thread." + ("" if stacks else " Record with Record(stacks=True) to see which line it is."),
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        rank=facts.rank,
        device=device.index,
    )
