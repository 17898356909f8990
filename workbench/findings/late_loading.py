"""WB211: kernels are still being loaded in steps that should be steady.

What: launch calls that load their kernel, or modules being loaded, after the first complete step.
Why: the device waits tens of milliseconds for code that warm-up should have brought.
What to do: warm every shape and branch up before the loop; CUDA_MODULE_LOADING=EAGER loads all
kernels at the start (longer start, more memory).
When it is wrong: the first use of a kernel claims nothing, so a recording of the very first steps
does not fire it; a validation pass that runs for the first time does.
"""

from workbench.findings.finding import Facts, Finding
from workbench.findings.lost_time import worst_device
from workbench.units import share_text

CODE = "WB211"

NOTE_SHARE = 0.02
"""Own choice: below it noise hides the loss."""
WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""As for waiting (TraceML)."""
LEAST_STEPS_WITH = 2
"""Own choice: kernels of a single step are a late first use."""


def late_loading(facts: Facts) -> Finding | None:
    """Fires when at least two steady steps wait for kernels being loaded."""
    found = worst_device(facts, ("kernel_loading",))
    if found is None:
        return None
    device, lost = found
    steady = device.steady
    if steady is None or lost.share <= NOTE_SHARE or steady.loading_steps < LEAST_STEPS_WITH:
        return None
    return Finding(
        code=CODE,
        title=f"Kernels are loaded in {steady.loading_steps} of {steady.steps} steps that should "
        f"be steady: the device idles {share_text(lost.share)} of {lost.whole} for it.",
        verdict="yes",
        severity=lost.severity(WARNING_SHARE, CRITICAL_SHARE),
        evidence={
            "steps_with_loading": steady.loading_steps,
            "loading_us_per_step": lost.ns / max(steady.steps, 1) / 1000,
            "operators_us": {name: ns / 1000 for name, ns in steady.places["kernel_loading"]},
            "steps": lost.steps,
        },
        advice="Run every shape and branch once before the loop, or set "
        "CUDA_MODULE_LOADING=EAGER before the process starts.",
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        rank=facts.rank,
        device=device.index,
    )
