"""Precision of a run: autocast, TF32, gradient scaling, and what the device can do."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.amp.grad_scaler import GradScaler

from workbench.errors import SettingError
from workbench.settings import Precision

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
_NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}


def check_precision(precision: Precision | None, device: torch.device, notes: list[str]) -> None:
    """Refuse a precision that cannot act on ``device``; note one that acts without native support.

    Raises:
        SettingError: TF32 without a device that has it, fp16 on a CPU without fp16 instructions.
    """
    if precision == "tf32" and not _has_tf32(device):
        raise SettingError(
            f"precision='tf32' cannot act on {device}: TF32 is a mode of NVIDIA tensor cores "
            "(compute capability 8.0 and later). Use 'bf16' or 'fp32' here."
        )
    if precision in _AUTOCAST and not native(_AUTOCAST[precision], device):
        if precision == "fp16" and device.type == "cpu":
            raise SettingError(
                "precision='fp16' is refused on this CPU: it has no fp16 instructions, and "
                "emulated fp16 was measured 12 to 20 times slower than fp32. Use 'bf16' or 'fp32'."
            )
        notes.append(f"{precision} is not native on {device}: expect it to be slower than fp32")


def native(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether ``device`` has instructions for matrix products in ``dtype``."""
    if device.type == "cpu":
        probe = {torch.bfloat16: "bf16", torch.float16: "fp16"}.get(dtype)
        if probe is None:
            return True
        return bool(getattr(torch.ops.mkldnn, f"_is_mkldnn_{probe}_supported")())
    if device.type == "cuda" and dtype is torch.bfloat16:
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return True


def autocast(precision: Precision | None, device: torch.device) -> AbstractContextManager[Any]:
    """The autocast region of a forward pass; nothing where the precision is left as it is."""
    if precision is None:
        return nullcontext()
    dtype = _AUTOCAST.get(precision)
    if dtype is None:
        return torch.autocast(device.type, enabled=False)
    return torch.autocast(device.type, dtype=dtype)


def whole_step_autocast(
    precision: Precision | None, device: torch.device
) -> AbstractContextManager[Any]:
    """The autocast region around a step of the user's own.

    Casts of weights are not cached: the step may update weights and use them again.
    """
    if precision is None:
        return nullcontext()
    dtype = _AUTOCAST.get(precision)
    if dtype is None:
        return torch.autocast(device.type, enabled=False)
    return torch.autocast(device.type, dtype=dtype, cache_enabled=False)


def set_matmul_mode(precision: Precision | None) -> None:
    """Switch TF32 on for ``tf32`` and off for ``fp32``; the flags are put back by the snapshot."""
    if precision not in {"fp32", "tf32"}:
        return
    tf32 = precision == "tf32"
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    if hasattr(torch._C, "_set_fp32_precision_setter"):
        for operator in ("conv", "rnn"):
            torch._C._set_fp32_precision_setter("cuda", operator, "tf32" if tf32 else "ieee")
            torch._C._set_fp32_precision_setter("mkldnn", operator, "ieee")
    else:
        torch.backends.cudnn.allow_tf32 = tf32


def scaler_for(precision: Precision | None, device: torch.device) -> GradScaler | None:
    """A gradient scaler for fp16, whose small gradients would vanish; none otherwise."""
    return GradScaler(device.type) if precision == "fp16" else None


def precision_name(
    precision: Precision | None, device: torch.device, dtype: torch.dtype | None
) -> str:
    """What is in force: the setting, else the user's autocast, TF32 mode, or the weights' dtype."""
    if precision is not None:
        return precision
    if torch.is_autocast_enabled(device.type):
        return _name(torch.get_autocast_dtype(device.type))
    if dtype in {None, torch.float32} and _has_tf32(device) and _tf32_on():
        return "tf32"
    return _name(dtype or torch.float32)


def _has_tf32(device: torch.device) -> bool:
    if device.type != "cuda" or torch.version.hip or not torch.cuda.is_available():
        return False
    return bool(torch.cuda.get_device_capability(device) >= (8, 0))


def _tf32_on() -> bool:
    try:
        return torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:
        return False


def _name(dtype: torch.dtype) -> str:
    return _NAMES.get(dtype, str(dtype).removeprefix("torch."))
