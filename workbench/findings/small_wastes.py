"""WB306: small things that a step does for nothing: TF32 off, extra copies, biases, zeroing.

What: fp32 products on a device whose TF32 mode is off; tensors that are made on the host and copied
to the device right after; convolutions with a bias directly in front of batch norm; gradients that
are filled with zeros instead of dropped.
Why: each costs a little in every step and takes one line to change; they are the patterns of
torch.profiler's own matcher.
What to do: torch.set_float32_matmul_precision("high"); make tensors on the device
(torch.zeros(..., device=device)); Conv2d(..., bias=False) before a norm;
optimizer.zero_grad(set_to_none=True).
When it is wrong: TF32 keeps ten bits of each number, which some sciences cannot spare; a tensor
that is made once is no loss; dropped gradients read as None, which code of one's own may not
expect.
"""

from dataclasses import dataclass
from typing import Any

from workbench import chips
from workbench.analysis.matrix_work import MatrixWork
from workbench.findings.finding import Facts, Finding
from workbench.findings.lost_time import busy_share, of_the_step
from workbench.units import count_text, share_text

CODE = "WB306"

LEAST_SHARE = 0.005
"""Own choice: of a step; below it a line of advice costs more than it saves."""
TF32_SHARE = 0.10
"""As for WB301: of the device's time."""
BUSY_SHARE = 0.50


@dataclass(frozen=True, kw_only=True)
class _Waste:
    name: str
    said: str
    advice: str
    ns: float | None
    """A step; ``None`` where nothing tells what it costs."""
    share: float | None
    setting: dict[str, Any] | None = None


def small_wastes(facts: Facts) -> Finding | None:
    """Fires when a step has at least one of them, as a note."""
    found = [waste for waste in (_tf32(facts), *_patterns(facts)) if waste is not None]
    if not found:
        return None
    settings: dict[str, Any] = {}
    for waste in found:
        settings |= waste.setting or {}
    told = [waste.ns for waste in found if waste.ns is not None]
    shares = [waste.share for waste in found if waste.share is not None]
    return Finding(
        code=CODE,
        title=f"Small wastes in every step: {'; '.join(waste.said for waste in found)}.",
        verdict="yes",
        severity="info",
        evidence={
            "patterns": [waste.name for waste in found],
            "us_per_step": {
                waste.name: None if waste.ns is None else waste.ns / 1000 for waste in found
            },
        },
        advice=" ".join(waste.advice for waste in found),
        share_of_window=max(shares, default=None),
        saving_ns_per_step_at_most=sum(told) if told else None,
        setting=settings or None,
        rank=facts.rank,
    )


def _tf32(facts: Facts) -> _Waste | None:
    """fp32 products and convolutions without tensor cores, on a busy device that has the mode."""
    for work in facts.matrix_work:
        device = next((each for each in facts.devices if each.index == work.device), None)
        if device is None or device.type != "cuda":
            continue  # the mode of torch is one of NVIDIA's tensor cores
        if not chips.native("tf32", device.type, device.name, device.arch):
            continue
        plain = work.total(
            families=("gemm", "convolution"),
            dtypes=frozenset({"fp32"}),
            tensor_core=frozenset({False}),
        )
        share = plain / work.time_ns if work.time_ns > 0 else 0.0
        if share > TF32_SHARE and busy_share(device) >= BUSY_SHARE:
            most, bound = _each(plain, work.steps), (facts.bounds_ns or {}).get("tf32_products")
            if most is not None and bound is not None:
                most = min(most, bound)
            return _Waste(
                name="tf32_off",
                said=f"TF32 is off, and fp32 products and convolutions take {share_text(share)} of "
                "the device's time",
                advice='Try torch.set_float32_matmul_precision("high") and '
                "torch.backends.cudnn.allow_tf32 = True (precision tf32), and compare losses.",
                ns=most,
                share=of_the_step(device, plain),
                setting=_tf32_switch(work),
            )
    return None


def _tf32_switch(work: MatrixWork) -> dict[str, Any]:
    """Products have a mode of their own; convolutions follow the precision."""
    fp32 = frozenset({"fp32"})
    convolutions = work.total(families=("convolution",), dtypes=fp32)
    if convolutions > work.total(families=("gemm",), dtypes=fp32):
        return {"precision": "tf32"}
    return {"matmul_precision": "high"}


def _each(ns: int, steps: int) -> float | None:
    return ns / steps if steps else None


def _patterns(facts: Facts) -> list[_Waste]:
    found, made = facts.small_patterns, []
    if found is None or found.step_ns <= 0:
        return []
    share = found.copies_ns / found.step_ns
    if found.copies and share > LEAST_SHARE:
        made.append(
            _Waste(
                name="extra_copies",
                said=f"{count_text(found.copies)} tensors are made on the host and copied to the "
                f"device right after ({share_text(share)} of the step)",
                advice="Make them on the device: torch.zeros(..., device=device).",
                ns=found.copies_ns,
                share=share,
            )
        )
    if found.biases:
        made.append(
            _Waste(
                name="bias_before_norm",
                said=f"{count_text(found.biases)} convolutions add a bias that the normalisation "
                "behind them takes away again",
                advice="Give convolutions before a batch or instance norm bias=False.",
                ns=None,
                share=None,
            )
        )
    share = found.zeroed_ns / found.step_ns
    if found.zeroed and share > LEAST_SHARE:
        made.append(
            _Waste(
                name="zeroed_gradients",
                said=f"zero_grad fills gradients with zeros ({share_text(share)} of the step) "
                "instead of dropping them",
                advice="Use optimizer.zero_grad(set_to_none=True), which is torch's default.",
                ns=found.zeroed_ns,
                share=share,
                setting={"set_to_none": True},
            )
        )
    return made
