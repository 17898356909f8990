"""WB205: the optimizer updates its parameters one by one.

What: the optimizer's step runs a handful of operators for each parameter instead of one for many.
Why: the host needs longer to launch them than the device to compute them.
What to do: torch.optim.AdamW(..., fused=True), or foreach=True, which is the default on a GPU; an
optimizer of one's own can use torch._foreach_* or torch.compile(optimizer.step).
When it is wrong: what counts is the step, not the optimizer: where the device is busy meanwhile the
gain is far smaller than the optimizer's own speed-up; the bound here is of the whole step. An
optimizer with a closure (LBFGS) trains the model inside its step: nothing is said of it.
"""

from dataclasses import replace

from workbench.analysis.optimizer_launches import OptimizerLaunches
from workbench.findings.finding import DeviceFacts, Facts, Finding
from workbench.findings.lost_time import LostTime, lost_time, worst_device
from workbench.findings.switching import FUSED, batched_optimizer
from workbench.units import count_text, share_text, time_text

CODE = "WB205"

LOST_TO = ("launch", "host_operators", "host_python", "host_other")
"""Causes of idle time that less work of the host shortens, wherever in the step it is saved."""
LEAST_SINGLE = 50
"""Own choice: fewer operators a step are not worth batching."""
BATCHED_SHARE = 0.2
"""Own choice: with more batched operators than this, it is batched already."""
NOTE_SHARE = 0.02
"""A batched optimizer gained 3 % of the whole step where its own time fell to a third (deepmd-kit,
pull request 4463): smaller bounds are not worth a change."""
CPU_NOTE_SHARE = 0.10
"""Own choice: on the CPU batching shortens the optimizer, it does not remove it."""
WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""As for waiting (TraceML)."""


def unbatched_optimizer(facts: Facts) -> Finding | None:
    """Fires when single-tensor operators dominate the optimizer and the step loses time to it."""
    own = facts.optimizer
    if own is None or own.single < LEAST_SINGLE * own.steps or own.steps < 1:
        return None
    if own.closure:  # what it takes, and most of its operators, are the model's
        return None
    if own.batched > BATCHED_SHARE * own.single:
        return None
    if facts.devices:
        return _on_device(facts, own)
    return _on_cpu(facts, own)


def _on_device(facts: Facts, own: OptimizerLaunches) -> Finding | None:
    """Its host time can end no more idle time than the device spends waiting for the host."""
    found = worst_device(facts, LOST_TO)
    if found is None:
        return None
    device, waiting = found
    most = waiting.ns
    if waiting.saving_ns is not None:
        most = round(max(waiting.saving_ns * waiting.steps, 0))
    lost = lost_time(facts, device, LOST_TO, ns=min(own.host_ns, most))
    if lost is None or lost.share <= NOTE_SHARE or not lost.steps:
        return None
    if lost.saving_ns is not None and lost.step_ns and own.device_ns:
        # One kernel for all parameters also takes less of the device than one for each.
        saving = min(lost.step_ns, lost.saving_ns + own.device_ns / own.steps)
        lost = replace(lost, saving_ns=saving)
    return _finding(facts, own, lost, device)


def _on_cpu(facts: Facts, own: OptimizerLaunches) -> Finding | None:
    if facts.voids("devices") or not facts.trace_steps or not facts.trace_window_ns:
        return None
    step = facts.trace_window_ns / facts.trace_steps
    per_step = own.host_ns / own.steps
    share = min(1.0, per_step / step)
    if share <= CPU_NOTE_SHARE:
        return None
    if facts.step_ns:
        record = sum(facts.step_ns) / len(facts.step_ns)
        per_step, step = share * record, record
    lost = LostTime(
        ns=own.host_ns,
        share=share,
        steps=facts.trace_steps,
        per_step_ns=per_step,
        step_ns=step,
        saving_ns=per_step,
    )
    return _finding(facts, own, lost, None)


def _finding(
    facts: Facts, own: OptimizerLaunches, lost: LostTime, device: DeviceFacts | None
) -> Finding:
    single = own.single / own.steps
    host = time_text(own.host_ns / own.steps)
    work = "" if own.device_ns is None else f" for {time_text(own.device_ns / own.steps)} of device"
    return Finding(
        code=CODE,
        title=f"The optimizer ({own.name}) is not batched: {count_text(single)} operators on "
        f"single tensors take {host} of host time{work} a step "
        f"under the profiler; {_cost(lost, device)}.",
        verdict="yes",
        severity=lost.severity(WARNING_SHARE, CRITICAL_SHARE),
        evidence={
            "optimizer": own.name,
            "single_tensor_operators_per_step": single,
            "batched_operators_per_step": own.batched / own.steps,
            "host_us_per_step": own.host_ns / own.steps / 1000,
            "device_us_per_step": None
            if own.device_ns is None
            else own.device_ns / own.steps / 1000,
            "launches_per_step": None if own.launches is None else own.launches / own.steps,
            "steps": own.steps,
        },
        advice=_advice(own, on_cpu=device is None),
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        setting=batched_optimizer(facts, own.name.partition(".")[0]),
        rank=facts.rank,
        device=None if device is None else device.index,
    )


def _cost(lost: LostTime, device: DeviceFacts | None) -> str:
    """What it takes of a step; a device may be busy with other work meanwhile."""
    if device is None:
        return f"{share_text(lost.share)} of {lost.whole}"
    return f"the device idles at most {share_text(lost.share)} of {lost.whole} for it"


def _advice(own: OptimizerLaunches, *, on_cpu: bool) -> str:
    kind = own.name.partition(".")[0]
    if kind in FUSED:
        way = "fused=True" if on_cpu else "fused=True (or foreach=True)"
        return f"Create it as torch.optim.{kind}(..., {way}), and compare whole steps."
    return (
        "Use an optimizer with fused=True or foreach=True, torch._foreach_* in one of your own, or "
        "torch.compile(optimizer.step), and compare whole steps."
    )
