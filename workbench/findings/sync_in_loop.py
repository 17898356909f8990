"""WB203: a call in the loop makes the host wait for the device, and the device then waits for it.

What: synchronizing calls in the steps (.item(), nonzero, copies of pageable memory, explicit
synchronization), and the idle time that follows them.
Why: while the host waits it launches nothing, so the device runs dry when the wait ends.
What to do: read losses only every so many steps, keep masks on the device (torch.where in place of
boolean indexing), copy from pinned memory with non_blocking=True, drop torch.cuda.synchronize().
When it is wrong: the wait itself is no loss, the gap behind it is; a host that no longer waits may
also run ahead and hide more, which the bound contains where the step could be replayed. Where the
device is busy meanwhile and does not idle afterwards, removing the call saves nothing, and the
finding says so ("ruled out").
"""

from workbench.analysis.sync_calls import SyncCalls, SyncSite
from workbench.findings.finding import DeviceFacts, Facts, Finding
from workbench.findings.lost_time import LEAST_STEPS_WARNING, LostTime, worst_device
from workbench.findings.switching import pinned
from workbench.units import count_text, number_text, share_text, time_text

CODE = "WB203"

NOTE_SHARE = 0.02
"""Own choice: reports of a removed sync gain 5 to 10 % of a step; below 2 % noise hides it."""
WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""As for waiting (TraceML)."""
MISLEADING_SHARE = 0.10
"""Own choice: from this share of a step on, a long wait in the trace looks like the culprit, so
that ruling it out is worth a line."""
MOST_SITES = 3
_AHEAD = (
    ". Removing the wait gains only what a host that runs ahead can hide of other idle time, by "
    "replaying the steps."
)

_ADVICE: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal"),
        "Read the value less often: keep it on the device (loss.detach()) and call .item() only "
        "every so many steps.",
    ),
    (
        ("aten::nonzero", "aten::masked_select", "aten::unique", "aten::_unique2", "aten::index"),
        "The size of a boolean mask must reach the host: use torch.where or a mask of fixed size "
        "in place of boolean indexing and nonzero().",
    ),
    (
        ("aten::copy_", "aten::_to_copy", "aten::to"),
        "Copy from pinned memory without waiting: DataLoader(pin_memory=True) and "
        ".to(device, non_blocking=True); keep results on the device instead of calling .cpu().",
    ),
)
_EXPLICIT = (
    "Remove the synchronization from the loop (torch.cuda.synchronize(), Event.synchronize(), "
    "timers that call them), or do it only every so many steps."
)


def sync_in_loop(facts: Facts) -> Finding | None:
    """Fires on idle time behind synchronizing calls; rules a long wait out that costs nothing."""
    calls = facts.sync_calls
    if calls is None or not calls.sites:
        return None
    found = worst_device(facts, ("synchronization",))
    if found is None:
        return None
    device, lost = found
    if lost.share > NOTE_SHARE:
        return _fires(facts, calls, device, lost)
    return _ruled_out(facts, calls, device, lost)


def _fires(facts: Facts, calls: SyncCalls, device: DeviceFacts, lost: LostTime) -> Finding:
    worst = calls.sites[0]
    return Finding(
        code=CODE,
        title=f"{_place(worst)} makes the host wait for the device "
        f"{_often(calls, worst.calls)}; the device then idles {share_text(lost.share)} of "
        f"{lost.whole}. What counts is that gap, not the wait of {_waited(calls)}.",
        verdict="yes",
        severity=lost.severity(WARNING_SHARE, CRITICAL_SHARE),
        evidence=_evidence(calls),
        advice=_advice(worst),
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        setting=_setting(facts, worst),
        rank=facts.rank,
        device=device.index,
    )


def _ruled_out(
    facts: Facts, calls: SyncCalls, device: DeviceFacts, lost: LostTime
) -> Finding | None:
    waited = sum(site.wait_ns for site in calls.sites)
    if calls.steps < LEAST_STEPS_WARNING or calls.time_ns <= 0:
        return None
    if waited / calls.time_ns <= MISLEADING_SHARE:
        return None
    longest = max(calls.sites, key=lambda site: site.wait_ns)
    ahead = (lost.saving_ns or 0.0) > NOTE_SHARE * (lost.step_ns or 0.0)
    return Finding(
        code=CODE,
        title=f"{_place(longest)} makes the host wait {_waited(calls)}, but the device is busy "
        f"meanwhile and idles only {share_text(lost.share)} of {lost.whole} for it"
        + (_AHEAD if ahead else ": removing the wait saves no more than that."),
        verdict="no",
        severity="info",
        evidence=_evidence(calls),
        advice=(
            "Look first at what keeps the device busy meanwhile."
            if ahead
            else "Leave it, and look at what keeps the device busy meanwhile."
        ),
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        rank=facts.rank,
        device=device.index,
    )


def _place(site: SyncSite) -> str:
    inner = site.operator or site.call
    name = f"{inner} in {site.within}" if site.within and site.within != inner else inner
    return f"{name}, called from {site.source}," if site.source else name


def _often(calls: SyncCalls, count: int) -> str:
    if not calls.steps:
        return "once" if count == 1 else f"{count_text(count)} times"
    if count == calls.steps:
        return "once a step"
    return f"{number_text(count / calls.steps)} times a step"


def _time(calls: SyncCalls, ns: int) -> str:
    return f"{time_text(ns / calls.steps)} a step" if calls.steps else time_text(ns)


def _waited(calls: SyncCalls) -> str:
    return _time(calls, sum(site.wait_ns for site in calls.sites))


def _evidence(calls: SyncCalls) -> dict[str, object]:
    shown = sorted(calls.sites, key=lambda site: (-site.idle_ns, -site.wait_ns))[:MOST_SITES]
    per = max(calls.steps, 1)
    end = "_per_step" if calls.steps else ""
    return {
        f"calls{end}": sum(site.calls for site in calls.sites) / per,
        f"wait_us{end}": sum(site.wait_ns for site in calls.sites) / per / 1000,
        f"idle_us{end}": sum(site.idle_ns for site in calls.sites) / per / 1000,
        "places": [
            f"{_place(site)} ({site.call}): {_often(calls, site.calls)}, waits "
            f"{_time(calls, site.wait_ns)}, then idle {_time(calls, site.idle_ns)}"
            for site in shown
        ],
        "steps": calls.steps,
    }


def _advice(site: SyncSite) -> str:
    for names, advice in _ADVICE:
        if site.operator in names or site.within in names:
            return advice
    return _EXPLICIT


def _setting(facts: Facts, site: SyncSite) -> dict[str, object] | None:
    """Pinned memory, for a copy whose batches come from a loader that does not pin."""
    copies = {"aten::copy_", "aten::_to_copy", "aten::to"}
    if not {site.operator, site.within} & copies or "emcpy" not in site.call:
        return None
    return pinned(facts)
