"""WB301: half precision brings nothing here, or tensor cores wait unused.

What: products, convolutions and attention by the type that they compute in and by whether their
kernels use tensor cores, against what the device has and how busy it is.
Why: half precision is faster through tensor cores, and only where the device's work decides the
step. A device that mostly waits for the host, that has no tensor cores, or that multiplies in TF32
already, gains memory and little or no time.
What to do: where the host decides, launch less (WB201); where a library has no fast kernel, compare
its versions; where tensor cores stand unused, try bf16 (fp16 on NVIDIA devices before compute
capability 8.0), and compare time and losses.
When it is wrong: kernels of a library that the names do not tell are left out; a model whose
weights decide the time (small batches) gains by half precision through less memory traffic, without
any tensor core.
"""

from typing import Any

from workbench import chips
from workbench.analysis.families import MATRIX_FAMILIES
from workbench.analysis.kernel_dtypes import LOW
from workbench.analysis.matrix_work import MatrixWork
from workbench.findings.finding import DeviceFacts, Facts, Finding, Severity
from workbench.findings.lost_time import (
    HOST,
    LEAST_STEPS_WARNING,
    busy_share,
    lost_time,
    of_the_step,
)
from workbench.units import bytes_text, share_text

CODE = "WB301"

BUSY_SHARE = 0.50
"""torch-tb-profiler: below it the device waits, and faster kernels cannot help."""
LEAST_SHARE = 0.10
"""Own choice: of the device's time; below it a lower precision is hardly measurable."""
WARNING_SHARE = 0.30
"""Own choice: from here on a gain of a third of it is 10 % of a step."""
MOSTLY = 0.50
"""Own choice: what names the type, or the kernels, of the matrix work."""
WORTH = 0.80
"""Own choice: a type is worth a try on the CPU from this ratio to fp32 down."""
VERSIONS = (
    *("torch", "cuda", "cudnn", "hip", "nvidia_driver"),
    *("cuda_runtime_version", "cuda_driver_version", "hip_runtime_version", "hip_driver_version"),
)
"""Of a Run's record, or of a trace's header."""
MOVED = ("forward", "backward", "other_operators")
"""Parts of a step on the host that a lower type can shorten: no loading, no Python, and autocast
leaves the optimizer its fp32."""
_AT_MOST = "At most all of their time is saved, and half of all other work's (half the bytes)"
HALF, PLAIN = frozenset(LOW), frozenset({"fp32"})


def useless_amp(facts: Facts) -> Finding | None:
    """Fires with the one explanation that the evidence carries; silent where none does."""
    if facts.voids("operator_device_time"):
        return None
    for work in sorted(facts.matrix_work, key=lambda each: -each.total()):
        if work.device is None:
            return _on_cpu(facts, work)
        device = next((each for each in facts.devices if each.index == work.device), None)
        if device is not None and work.share > LEAST_SHARE:
            return _on_device(facts, device, work)
    return None


def _on_device(facts: Facts, device: DeviceFacts, work: MatrixWork) -> Finding | None:
    cores = chips.tensor_cores(device.type, device.name, device.arch)
    busy = busy_share(device)
    active = work.low_ns / work.total() >= MOSTLY
    if not active and busy < BUSY_SHARE:
        return None  # a device that waits is WB201's, which says that precision gains nothing
    if cores is False:
        return _without_cores(facts, device, work, active=active)
    if active:
        slow = _slow_family(work) if cores else None
        if slow is not None:
            return _no_fast_kernel(facts, device, work, slow)
        return _waiting(facts, device, work, busy) if busy < BUSY_SHARE else None
    if work.total(dtypes=frozenset({"tf32"})) / work.total() >= MOSTLY:
        return _tf32_already(facts, device, work)
    return _unused(facts, device, work) if cores else None


def _waiting(facts: Facts, device: DeviceFacts, work: MatrixWork, busy: float) -> Finding | None:
    """Silent about a recording without steps, or one that mostly shows a program starting."""
    steady = device.steady
    if steady is None or not steady.steps or lost_time(facts, device, HOST) is None:
        return None
    causes = {cause: ns for cause, ns in steady.by_cause.items() if ns}
    longest = max(causes, key=lambda cause: causes[cause], default="")
    on = "data" if longest == "input" else "the host" if longest in HOST else "something else"
    return _finding(
        facts,
        device,
        work,
        title=f"Half precision is in use, but hardly makes this step faster: the device is busy "
        f"{share_text(busy)} of the time, and waits for {on} otherwise. What it saves is "
        f"memory{_memory(facts)}.",
        advice="Let the device wait less first (see the findings on that); then compare "
        "precisions again.",
        evidence={"longest_wait": longest or None},
    )


def _without_cores(facts: Facts, device: DeviceFacts, work: MatrixWork, *, active: bool) -> Finding:
    name = device.name or "this device"
    would = "is on" if active else "would bring little"
    return _finding(
        facts,
        device,
        work,
        title=f"Half precision {would}, but {name} has no tensor cores "
        f"({chips.generation_text(device.type, device.arch)}): products and convolutions, "
        f"{share_text(work.share)} of the device's time, hardly get faster by it. What it saves is "
        f"memory{_memory(facts)}.",
        advice="Keep it for the memory that it saves (a larger batch), not for time; compare both.",
        verdict="yes" if active else "no",
    )


def _tf32_already(facts: Facts, device: DeviceFacts, work: MatrixWork) -> Finding:
    share = work.total(dtypes=frozenset({"tf32"})) / work.total()
    return _finding(
        facts,
        device,
        work,
        title=f"Tensor cores are in use already: {share_text(share)} of the time of products and "
        "convolutions is TF32. Half precision gains less over it than over fp32: at most what is "
        "left of these kernels, and memory.",
        advice="Compare bf16 with the step as it is, and count the memory too; do not expect the "
        "factor that is known from fp32.",
        verdict="no",
        setting=_half(device),
    )


def _no_fast_kernel(facts: Facts, device: DeviceFacts, work: MatrixWork, family: str) -> Finding:
    ns = work.total(families=(family,))
    known = {name: facts.environment[name] for name in VERSIONS if facts.environment.get(name)}
    told = ", ".join(f"{name} {value}" for name, value in known.items())
    what = {"gemm": "matrix products", "convolution": "convolutions"}.get(family, family)
    return _finding(
        facts,
        device,
        work,
        title=f"Half precision is active, but 0 % of the time of {what} is in tensor-core kernels, "
        f"although {device.name or 'the device'} has them: the libraries have no fast kernel for "
        f"these shapes. Versions: {told or 'not recorded in this trace'}.",
        advice=f"Record once more with another version of torch (it brings cuDNN and cuBLAS) and "
        f"compare: versions are told before times. Until then, compare {what} in fp32.",
        saving=ns / work.steps if work.steps else None,
        share=of_the_step(device, ns),
        evidence={"family": family, "versions": known or None},
        graded=True,
    )


def _unused(facts: Facts, device: DeviceFacts, work: MatrixWork) -> Finding | None:
    ns = work.total(dtypes=PLAIN, tensor_core=frozenset({False}))
    used = work.total(tensor_core=frozenset({True}))
    share = ns / work.time_ns
    if used or share <= LEAST_SHARE:
        return None
    return _finding(
        facts,
        device,
        work,
        title=f"Tensor cores stand unused: fp32 products and convolutions take {share_text(share)} "
        f"of the device's time, and {device.name or 'the device'} could compute them in a lower "
        "precision.",
        advice=f"Try precision {_lower(device)}, and compare time and losses. {_AT_MOST}, as far "
        "as the step waits for it.",
        saving=_most(work, ns),
        share=of_the_step(device, ns),
        setting=_half(device),
        graded=True,
    )


def _on_cpu(facts: Facts, work: MatrixWork) -> Finding | None:
    """bf16 that the processor has and the loop does not use; needs measured ratios."""
    found = next((each for each in facts.dtypes if each.get("dtype") == "bf16"), None)
    if facts.devices or found is None or not found.get("native"):
        return None
    ratio = found.get("matmul_ratio")
    ns = work.total(dtypes=PLAIN)
    share = min(1.0, ns / work.time_ns) if work.time_ns > 0 else 0.0
    if ratio is None or ratio > WORTH or share <= LEAST_SHARE:
        return None
    known = [each for each in (ratio, found.get("convolution_ratio")) if each]
    best = max(0.0, min(known))
    return _finding(
        facts,
        None,
        work,
        title=f"This processor multiplies bf16 by itself, in {ratio:.2g} × the time of fp32 "
        f"(measured here), and fp32 products and convolutions take {share_text(share)} of the "
        "step.",
        advice="Try precision bf16, and compare time and losses. At most they fall to "
        f"{best:.2g} of their time, and the other operators of forward and backward to half (half "
        "the bytes); casts around small operators take back a part of it.",
        saving=_most_on_cpu(facts, work, ns, best),
        share=share,
        setting={"precision": "bf16"},
        evidence={"bf16_matmul_ratio": ratio},
        graded=True,
    )


def _slow_family(work: MatrixWork) -> str | None:
    """A family in half precision none of whose kernels uses tensor cores, told by their names."""
    for family in MATRIX_FAMILIES:
        total = work.total(families=(family,))
        low = work.total(families=(family,), dtypes=HALF)
        fast = work.total(families=(family,), tensor_core=frozenset({True}))
        told = work.total(families=(family,), tensor_core=frozenset({False}))
        worth = total / work.time_ns > LEAST_SHARE and low / total >= MOSTLY
        if worth and not fast and told / total >= MOSTLY:
            return family
    return None


def _most(work: MatrixWork, ns: int) -> float | None:
    """What a type of half the bytes saves a step at most: this work, and half of all other.

    Args:
        work: Products and the like, and the time that they are a part of.
        ns: Those that would be computed in the type.
    """
    rest = max(0.0, work.time_ns - work.total())
    return (ns + rest / 2) / work.steps if work.steps else None


def _most_on_cpu(facts: Facts, work: MatrixWork, ns: int, best: float) -> float | None:
    """The same of a processor: products in their best measured ratio, and half of other operators.

    What the step waits for, and runs beside operators, no type shortens.
    """
    if not work.steps:
        return None
    parts, window = facts.host_breakdown_ns, facts.trace_window_ns
    moved = 1.0
    if parts is not None and window:
        moved = min(1.0, sum(parts.get(name) or 0 for name in MOVED) / window)
    rest = max(0.0, work.time_ns * moved - work.total())
    return (ns * (1 - min(best, 1.0)) + rest / 2) / work.steps


def _half(device: DeviceFacts) -> dict[str, Any] | None:
    known = chips.native("bf16", device.type, device.name, device.arch)
    return None if known is None else {"precision": "bf16" if known else "fp16"}


def _lower(device: DeviceFacts) -> str:
    """The precisions to try on this device: TF32 is a mode of NVIDIA's alone in torch."""
    half = (_half(device) or {}).get("precision", "bf16")
    tf32 = chips.native("tf32", device.type, device.name, device.arch)
    return f"{half}, or tf32" if device.type == "cuda" and tf32 else half


def _memory(facts: Facts) -> str:
    peak = facts.peak_bytes
    return "" if peak is None else f" (at most {bytes_text(peak)} were in use)"


def _finding(
    facts: Facts,
    device: DeviceFacts | None,
    work: MatrixWork,
    *,
    title: str,
    advice: str,
    verdict: Any = "yes",
    saving: float | None = None,
    share: float | None = None,
    setting: dict[str, Any] | None = None,
    evidence: dict[str, Any] | None = None,
    graded: bool = False,
) -> Finding:
    """The finding with the evidence that every explanation shares."""
    step = None if facts.step_ns is None else sum(facts.step_ns) / len(facts.step_ns)
    if saving is not None and device is not None:
        saving, share = _exposed(facts, device, saving, share)
    if saving is not None and step is not None:
        saving = min(saving, step)
    enough = graded and (share or 0) >= WARNING_SHARE and work.steps >= LEAST_STEPS_WARNING
    severity: Severity = "warning" if enough else "info"
    return Finding(
        code=CODE,
        title=title,
        verdict=verdict,
        severity=severity,
        evidence=_of_device(device, work)
        | {"matrix_share": work.share, "time_us_by_type": _by_type(work), "steps": work.steps}
        | (evidence or {}),
        advice=advice,
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=step / (step - saving) if step and saving and step > saving else None,
        setting=setting,
        rank=facts.rank,
        device=None if device is None else device.index,
    )


def _of_device(device: DeviceFacts | None, work: MatrixWork) -> dict[str, Any]:
    """What is known of the device; a processor has none of it to measure."""
    if device is None:
        return {}
    return {
        "device": device.name or None,
        "generation": device.arch or None,
        "busy_share": busy_share(device),
        "tensor_core_share": work.total(tensor_core=frozenset({True})) / work.total(),
    }


def _exposed(
    facts: Facts, device: DeviceFacts, saving: float, share: float | None
) -> tuple[float, float | None]:
    """Saving and share as far as the step waits for this work, where replaying it can tell."""
    known = (facts.bounds_ns or {}).get("half_precision")
    if known is None:
        return saving, share
    saving, steady = min(saving, known), device.steady
    if share is not None and steady is not None and steady.steps and steady.time_ns > 0:
        share = min(share, saving * steady.steps / steady.time_ns)
    return saving, share


def _by_type(work: MatrixWork) -> dict[str, float]:
    sums: dict[str, float] = {}
    for (_, dtype, _), ns in work.ns.items():
        sums[dtype or "unknown"] = sums.get(dtype or "unknown", 0.0) + ns / 1000
    return sums
