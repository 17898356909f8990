"""WB502: steady steps ask the driver for device memory, or it is held in pieces of no use.

What: calls such as cudaMalloc, hipMalloc and cudaFree in most of the steps after warm-up, their
host time, and the idle time of the device for them. In a memory snapshot: a request that failed
while more than was asked for, and more than 30 % of what is reserved, lay unused in pieces.
Why: torch's caching allocator asks the driver only for what it does not hold. A step that still
asks gave its blocks back before (torch.cuda.empty_cache(), or a retry at the limit of memory), or
needs another size every time; and cudaFree waits until the device has drained.
What to do: no torch.cuda.empty_cache() in the loop; for sizes that change
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or inputs padded to a few sizes; leave the
allocator more memory (a smaller batch).
When it is wrong: first uses, warm-up and a few late steps are left out, as are calls of the
driver's stream-ordered pool (cudaMallocAsync). Where the device has work queued meanwhile it loses
nothing, and the finding says so.
"""

from workbench.analysis.device_allocations import DeviceAllocations
from workbench.analysis.snapshots.out_of_memory import PostMortem
from workbench.findings.finding import DeviceFacts, Facts, Finding
from workbench.findings.lost_time import LostTime, worst_device
from workbench.units import bytes_text, number_text, share_text, time_text

CODE = "WB502"

LEAST_STEPS = 4
"""Own choice: in real recordings of two or three steps the allocator still fills its cache."""
MOST_STEPS = 0.5
"""Own choice: what at least half of the steps do is no late first use."""
WARNING_SHARE = 0.05
"""Own choice, below that of waiting: the remedy is one line."""
CRITICAL_SHARE = 0.20
"""As for waiting (TraceML)."""


def allocator_churn(facts: Facts) -> Finding | None:
    """Fires when half of the steady steps ask the driver, or fragments made a request fail."""
    if facts.post_mortem is not None and facts.post_mortem.fragmented:
        return _fragmented(facts, facts.post_mortem)
    asked = facts.allocations
    if asked is None or asked.steps < LEAST_STEPS:
        return None
    if asked.steps_with < MOST_STEPS * asked.steps:
        return None
    found = worst_device(facts, ("allocation",))
    return None if found is None else _finding(facts, asked, *found)


def _finding(
    facts: Facts, asked: DeviceAllocations, device: DeviceFacts, lost: LostTime
) -> Finding:
    calls, gives = asked.calls / asked.steps, asked.releases / asked.steps
    back = f" and gives some back {number_text(gives)} times" if asked.releases else ""
    return Finding(
        code=CODE,
        title=f"A step asks the driver for device memory {number_text(calls)} times{back}: that "
        f"takes {time_text(asked.host_ns / asked.steps)} of the host, and the device idles "
        f"{share_text(lost.share)} of {lost.whole} for it.",
        verdict="yes",
        severity=lost.severity(WARNING_SHARE, CRITICAL_SHARE),
        evidence={
            "allocations_per_step": calls,
            "releases_per_step": gives,
            "steps_with_allocation": asked.steps_with,
            "host_us_per_step": asked.host_ns / asked.steps / 1000,
            "idle_us_per_step": lost.ns / max(lost.steps, 1) / 1000,
            "steps": lost.steps,
        },
        advice=_advice(asked),
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        rank=facts.rank,
        device=device.index,
    )


def _fragmented(facts: Facts, failed: PostMortem) -> Finding:
    unused, reserved = failed.unused_bytes, max(failed.reserved_bytes, 1)
    holders = ", ".join(line for _, line, _ in failed.largest[:2] if line)
    return Finding(
        code=CODE,
        title=f"{bytes_text(failed.requested_bytes)} could not be had while "
        f"{bytes_text(unused)} ({share_text(unused / reserved)} of what is reserved) lay unused "
        "in pieces too small for it.",
        verdict="yes",
        severity="critical",
        evidence={
            "requested_bytes": failed.requested_bytes,
            "live_bytes": failed.live_bytes,
            "reserved_bytes": failed.reserved_bytes,
            "asked_by": failed.line or None,
            "held_by": holders or None,
        },
        advice="Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the first use of the "
        "device; keep on the host what lives long and is small (logs, metrics).",
        rank=facts.rank,
        device=failed.device,
    )


def _advice(asked: DeviceAllocations) -> str:
    if asked.releases:
        return (
            "Take torch.cuda.empty_cache() out of the loop; if there is none, the allocator runs "
            "into the limit of memory and retries: a smaller batch, or "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
        )
    return (
        "Sizes change from step to step: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or "
        "pad inputs to a few sizes."
    )
