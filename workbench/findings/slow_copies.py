"""WB107: copies to the device take part of every step.

What: copies from the host's memory during which the device does nothing else.
Why: a copy from pageable memory goes through a buffer of the driver and blocks its caller, so it
can never overlap with compute; a pinned one can, on its own stream.
What to do: DataLoader(pin_memory=True) together with .to(device, non_blocking=True); send small
dtypes (uint8 pictures) and convert them on the device.
When it is wrong: pinning is one more copy on the host and shifts work to a thread; where copies are
hidden, or the loader is the bottleneck, it gains nothing or costs.
"""

from workbench.findings.finding import DeviceFacts, Facts, Finding
from workbench.findings.lost_time import LostTime
from workbench.units import bytes_text, share_text, significant

CODE = "WB107"

WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""Both as TraceML documents them, of the exposed part."""


def slow_copies(facts: Facts) -> Finding | None:
    """Fires when exposed copies from the host take at least 10 % of the window."""
    if facts.voids("busy") or not facts.trace_steps:
        return None
    known = [d for d in facts.devices if d.copies is not None and d.window_ns > 0]
    device = max(known, key=lambda d: _exposed(d) / d.window_ns, default=None)
    if device is None or _exposed(device) < WARNING_SHARE * device.window_ns:
        return None
    return _finding(facts, device, _lost(facts, device, facts.trace_steps))


def _exposed(device: DeviceFacts) -> int:
    return device.copies.exposed_ns if device.copies is not None else 0


def _lost(facts: Facts, device: DeviceFacts, steps: int) -> LostTime:
    exposed = _exposed(device)
    per_step, step = exposed / steps, device.window_ns / steps
    saving = per_step
    if facts.step_ns:
        step = sum(facts.step_ns) / len(facts.step_ns)
    return LostTime(
        ns=exposed,
        share=min(1.0, exposed / device.window_ns),
        steps=steps,
        per_step_ns=per_step,
        step_ns=step,
        saving_ns=min(saving, step),
    )


def _finding(facts: Facts, device: DeviceFacts, lost: LostTime) -> Finding:
    copies = device.copies
    assert copies is not None
    pageable = copies.pageable_ns > copies.total_ns / 2
    rate = copies.gb_s
    speed = "" if rate is None else f" at {significant(rate)} GB/s"
    size = "" if copies.bytes is None else f"{bytes_text(copies.bytes / lost.steps)} a step"
    moved = f" ({size}{speed})" if size else ""
    kind = " from pageable memory" if pageable else ""
    return Finding(
        code=CODE,
        title=f"Copies to the device{kind} that nothing hides take {share_text(lost.share)} of "
        f"{lost.whole}{moved}.",
        verdict="yes",
        severity=lost.severity(WARNING_SHARE, CRITICAL_SHARE),
        evidence={
            "exposed_us_per_step": lost.ns / lost.steps / 1000,
            "copy_us_per_step": copies.total_ns / lost.steps / 1000,
            "bytes_per_step": None if copies.bytes is None else copies.bytes / lost.steps,
            "gb_s": rate,
            "pageable_share": copies.pageable_ns / copies.total_ns if copies.total_ns else None,
            "steps": lost.steps,
        },
        advice=_PIN if pageable else _OVERLAP,
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        setting={"pin_memory": True, "non_blocking": True}
        if pageable and facts.effective.get("pin_memory") is False
        else None,
        rank=facts.rank,
        device=device.index,
    )


_PIN = (
    "Copy from pinned memory without waiting: DataLoader(pin_memory=True) and "
    ".to(device, non_blocking=True). Or send fewer bytes, such as uint8 converted on the device."
)
_OVERLAP = (
    "Copy the next batch while this one is computed (a torch.cuda.Stream of its own and "
    "non_blocking=True), or send fewer bytes, such as uint8 converted on the device."
)
