"""WB107: handing batches over takes part of every step: pinning, or copies to the device.

What: copies from the host's memory during which the device does nothing else; and waits for a batch
that is made already, but has still to be taken from its worker or pinned.
Why: a copy from pageable memory goes through a buffer of the driver and blocks its caller, so it
can never overlap with compute; a pinned one can, on its own stream. Pinning copies once more, on a
thread of the training process that also takes batches from the workers.
What to do: DataLoader(pin_memory=True) together with .to(device, non_blocking=True); send small
dtypes (uint8 pictures) and convert them on the device; few large tensors a batch. Where pinning is
what the step waits for, leave it out.
When it is wrong: pinning shifts work to a thread; where copies are hidden, or the loader is the
bottleneck, it gains nothing or costs.
"""

from workbench.findings.finding import DeviceFacts, Facts, Finding
from workbench.findings.input_wait import NOTE_SHARE, severity
from workbench.findings.loader_advice import row_by_row
from workbench.findings.lost_time import LostTime
from workbench.findings.making import handing_over_ns
from workbench.findings.stalled import stalled
from workbench.findings.switching import pinned
from workbench.units import bytes_text, share_text, significant

CODE = "WB107"

WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""Both as TraceML documents them, of the exposed part."""


def slow_copies(facts: Facts) -> Finding | None:
    """Fires when exposed copies, or pinning and taking over, take at least 10 % of the steps."""
    return _copied(facts) or _handed_over(facts)


def _copied(facts: Facts) -> Finding | None:
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
        f"{lost.whole}{moved}{_all_kinds(device, lost)}.",
        verdict="yes",
        severity=lost.severity(WARNING_SHARE, CRITICAL_SHARE),
        evidence={
            "exposed_us_per_step": lost.ns / lost.steps / 1000,
            "copy_us_per_step": copies.total_ns / lost.steps / 1000,
            "bytes_per_step": None if copies.bytes is None else copies.bytes / lost.steps,
            "gb_s": rate,
            "pageable_share": copies.pageable_ns / copies.total_ns if copies.total_ns else None,
            "steps": lost.steps,
            **_per_batch(facts),
        },
        advice=_PIN if pageable else _OVERLAP,
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        setting=pinned(facts) if pageable else None,
        rank=facts.rank,
        device=device.index,
    )


def _all_kinds(device: DeviceFacts, lost: LostTime) -> str:
    """Copies of every kind, where those in other directions take a good part as well."""
    whole = min(1.0, device.exposed_memory_ns / device.window_ns)
    if whole - lost.share < WARNING_SHARE:
        return ""
    return f"; with those from the device and inside it, copies take {share_text(whole)}"


def _per_batch(facts: Facts) -> dict[str, float | None]:
    """Pinning and taking over, for comparison with the copies themselves."""
    stages = facts.loader_stages
    if stages is None:
        return {}
    each = {"pin": stages.pin_ns, "unpickle": stages.unpickle_ns}
    return {
        f"{name}_us_per_batch": None if ns is None else ns / stages.batches / 1000
        for name, ns in each.items()
    }


def _handed_over(facts: Facts) -> Finding | None:
    """The step waits for batches that are being pinned, or taken from their workers."""
    found = stalled(facts)
    if found is None or row_by_row(facts):
        return None
    part = max(("pin", "transfer"), key=found.share)
    share, saving = found.share_of_step(part), found.saving_ns(part)
    stages = facts.loader_stages
    own = None if stages is None or part != "transfer" else handing_over_ns(stages)
    if own is not None:
        saving = min(saving, own)
    # Workers that make batches no faster than they are taken leave nothing to gain here.
    if share < WARNING_SHARE or saving <= NOTE_SHARE * found.wait.step_ns:
        return None
    pins = facts.effective.get("pin_memory")
    pinning = part == "pin"
    what = "pinned" if pinning else "taken over from its worker"
    setting = {"pin_memory": False} if pinning and pins else None
    if not pinning and pins is False and facts.devices and facts.effective.get("workers"):
        setting = {"pin_memory": True}
    return Finding(
        code=CODE,
        title=f"Each step waits for a batch that is being {what} for {share_text(share)} of its "
        "time.",
        verdict="yes",
        severity=severity(
            min(share, found.usual_share, saving / found.wait.step_ns), found.wait.steps
        ),
        evidence={
            "share_of_wait": found.share(part),
            "steps": found.wait.steps,
            **_per_batch(facts),
        },
        advice=_UNPIN if pinning else _FEWER,
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=found.speedup_of(saving),
        setting=setting,
        rank=facts.rank,
        device=found.wait.device,
    )


_UNPIN = (
    "Leave pinning out (pin_memory=False) and compare: copies may take longer, batches come sooner."
)
_FEWER = (
    "Put fewer and larger tensors into a batch: each is handed over by itself. With a device, "
    "pin_memory=True moves taking over to a thread of its own."
)
_PIN = (
    "Copy from pinned memory without waiting: DataLoader(pin_memory=True) and "
    ".to(device, non_blocking=True). Or send fewer bytes, such as uint8 converted on the device."
)
_OVERLAP = (
    "Copy the next batch while this one is computed (a torch.cuda.Stream of its own and "
    "non_blocking=True), or send fewer bytes, such as uint8 converted on the device."
)
