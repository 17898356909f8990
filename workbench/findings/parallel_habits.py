"""WB403: an old or needless way to be parallel is in use.

What: nn.DataParallel; a backend of the host (gloo, MPI) that moves the tensors of a device; or
find_unused_parameters where torch itself says that no parameter was unused.
Why: DataParallel copies the model and spreads the batch in every step, from one interpreter; a
backend of the host takes every byte through the host's memory; the search for unused parameters
walks the graph once more in every step.
What to do: DistributedDataParallel with a process a device; the backend of the device (nccl, xccl);
find_unused_parameters=False. Measure before and after: the cost depends on the model.
When it is wrong: the search often costs nothing that can be measured, so no gain is claimed; small
collectives of the host beside a device (a loss, a count) are no fault, and DataParallel that has
only one device does nothing at all.
"""

from workbench.findings.finding import Facts, Finding
from workbench.findings.parallel_switch import parallel_with
from workbench.units import bytes_text, share_text, time_text

CODE = "WB403"

LEAST_BYTES = 1_000_000
"""Own choice: a step that moves less over the host moves no gradients."""
WARNING_SHARE = 0.10
"""As for exposed communication."""
_BACKENDS = {"cuda": "nccl", "hip": "nccl", "xpu": "xccl"}
UNUSED = "find_unused_parameters=True was specified"
"""How torch's own warning begins that no parameter was unused."""


def parallel_habits(facts: Facts) -> Finding | None:
    """Fires on the presence of one of them; the costliest comes first."""
    return _data_parallel(facts) or _host_backend(facts) or _unused(facts)


def _data_parallel(facts: Facts) -> Finding | None:
    found = facts.data_parallel
    if found is None:
        return None
    devices, moving = len(found.busy), found.moving_ns
    evidence = {
        "devices": devices,
        "forward_passes": found.calls,
        "copying_and_spreading_us_per_step": None if moving is None else moving / 1000,
        "busy_share": {str(device): share for device, share in found.busy.items()},
    }
    advice = (
        "Use DistributedDataParallel with a process a device; it keeps one model on each and sums "
        "gradients beside backward."
    )
    if devices < 2:
        return Finding(
            code=CODE,
            title="nn.DataParallel has no effect here: no more than one device works.",
            verdict="yes",
            severity="info",
            evidence=evidence,
            advice=f"Take the wrapper away. For several devices: {advice[0].lower()}{advice[1:]}",
            rank=facts.rank,
        )
    steps = facts.trace_step_ns or ()
    step = sum(steps) / len(steps) if steps and moving is not None else None
    share = min(moving / step, 1.0) if step and moving is not None else None
    busy = ", ".join(f"device {d} {share_text(s)}" for d, s in sorted(found.busy.items()))
    return Finding(
        code=CODE,
        title=f"nn.DataParallel copies the model and spreads the batch{_each_step(moving, share)} "
        f"from one interpreter; busy: {busy}.",
        verdict="yes",
        severity="warning" if share is not None and share >= WARNING_SHARE else "info",
        evidence=evidence,
        advice=advice,
        share_of_window=share,
        saving_ns_per_step_at_most=moving if step else None,
        speedup_at_most=1 / (1 - share) if share is not None and share < 1 else None,
        setting={"parallel": "ddp"},
        rank=facts.rank,
    )


def _each_step(moving_ns: float | None, share: float | None) -> str:
    """What it takes of a step, as far as there are steps."""
    if moving_ns is None:
        return ""
    cost = "" if share is None else f" ({share_text(share)})"
    return f" for {time_text(moving_ns)}{cost} of each step"


def _host_backend(facts: Facts) -> Finding | None:
    moved = facts.host_backend_bytes
    if moved is None or moved < LEAST_BYTES:
        return None
    kind = next((device.type for device in facts.devices), "")
    backend = _BACKENDS.get(kind)
    return Finding(
        code=CODE,
        title=f"A backend of the host moves {bytes_text(moved)} of each step although a device "
        "works: every byte goes through the host's memory.",
        verdict="yes",
        severity="warning",
        evidence={"bytes_per_step": moved},
        advice="Start the process group with the device's backend (nccl on NVIDIA and AMD, xccl on "
        "Intel), or with both: backend='cpu:gloo,cuda:nccl'.",
        setting=None if backend is None else parallel_with(facts, backend=backend),
        rank=facts.rank,
    )


def _unused(facts: Facts) -> Finding | None:
    said = next((text for text in facts.warnings if UNUSED in text), None)
    if said is None:
        return None
    return Finding(
        code=CODE,
        title="find_unused_parameters=True searches the graph in every step, and torch says that "
        "no parameter was unused.",
        verdict="yes",
        severity="info",
        evidence={"warning": said},
        advice="Leave find_unused_parameters out and measure: often there is no effect that can be "
        "measured.",
        setting=parallel_with(facts, find_unused_parameters=False),
        rank=facts.rank,
    )
