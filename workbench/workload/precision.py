"""Precision of a run: autocast, TF32, gradient scaling, and what the device can do."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.amp.grad_scaler import GradScaler

from workbench.errors import SettingError
from workbench.machine.dtypes import native_dtypes, probe
from workbench.settings import MatmulPrecision, Precision

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.bfloat16}
_NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}


def check_precision(precision: Precision | None, device: torch.device, notes: list[str]) -> None:
    """Refuse a precision that cannot act on ``device``; note one that acts without native support.

    Raises:
        SettingError: TF32 or fp8 without a device that has it, fp16 on a CPU without fp16
            instructions.
    """
    no_fp8 = why_no_fp8(device) if precision == "fp8" else None
    if no_fp8 is not None:
        raise SettingError(f"precision='fp8' cannot act on {device}: {no_fp8}. Use 'bf16' here.")
    if precision == "tf32" and not _has_tf32(device):
        raise SettingError(
            f"precision='tf32' cannot act on {device}: TF32 is a mode of NVIDIA tensor cores "
            "(compute capability 8.0 and later). Use 'bf16' or 'fp32' here."
        )
    dtype = low_dtype(precision)
    if dtype is None or native(dtype, device):
        return
    if precision == "fp16" and device.type == "cpu":
        raise SettingError(
            "precision='fp16' is refused on this CPU: it has no fp16 instructions, and emulated "
            f"fp16 {_cost('fp16', device)}. Use 'bf16' or 'fp32'."
        )
    notes.append(f"{precision} is not native on {device}: emulated it {_cost('bf16', device)}")


def _cost(dtype: str, device: torch.device) -> str:
    """What an imitated type costs on this machine, measured once and remembered."""
    (found,) = (one for one in probe(str(device)) if one.dtype == dtype)
    if found.factor is None:
        return "was measured 12 to 20 times slower than fp32 on others"
    return f"was measured here at {found.factor:.3g} times the time of fp32"


def why_no_fp8(device: torch.device) -> str | None:
    """Why linear layers cannot multiply in fp8 on ``device``; ``None`` where they can."""
    if device.type != "cuda" or torch.version.hip:
        cost = f", and imitated fp8 {_cost('fp8', device)}" if device.type == "cpu" else ""
        return f"it takes an NVIDIA device of compute capability 8.9 or later{cost}"
    if torch.cuda.get_device_capability(device) < (8, 9):
        return "its compute capability is below 8.9"
    return None if hasattr(torch, "_scaled_mm") else "this torch has no product of fp8 matrices"


def low_dtype(precision: Precision | None) -> torch.dtype | None:
    """The dtype below fp32 that a precision computes in; ``None`` where it does not."""
    return torch.bfloat16 if precision == "bf16_pure" else _AUTOCAST.get(precision or "")


def native(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether ``device`` has instructions for matrix products in ``dtype``."""
    if device.type == "cpu":
        return native_dtypes().get(_NAMES.get(dtype, "")) is not False
    if device.type == "cuda" and dtype is torch.bfloat16:
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return True


def autocast(
    precision: Precision | None, device: torch.device, cache: bool | None = None
) -> AbstractContextManager[Any]:
    """The autocast region of a forward pass; nothing where the precision is left as it is."""
    if precision is None:
        return nullcontext()
    dtype = _AUTOCAST.get(precision)
    if dtype is None:
        return torch.autocast(device.type, enabled=False)
    return torch.autocast(device.type, dtype=dtype, cache_enabled=cache)


def whole_step_autocast(
    precision: Precision | None, device: torch.device
) -> AbstractContextManager[Any]:
    """The autocast region around a step of the user's own.

    Casts of weights are not cached: the step may update weights and use them again.
    """
    return autocast(precision, device, cache=False)


def check_cache(precision: Precision | None, cache: bool | None, *, inside: bool) -> None:
    """Refuse to keep casts of weights over a whole step, which may update them in between.

    Raises:
        SettingError: For a cache asked for around a step that does not say where forward is.
    """
    if cache and precision is not None and not inside:
        raise SettingError(
            "autocast_cache=True cannot act around a step of your own: casts of weights would be "
            "kept beyond their update. Give the step a control argument and use control.forward()."
        )


def set_matmul_mode(precision: Precision | None, products: MatmulPrecision | None) -> None:
    """Set how exact products of fp32 matrices are; the snapshot puts the flags back.

    ``tf32`` and ``fp32`` also switch convolutions and recurrent layers.
    """
    tf32 = precision == "tf32"
    if precision in {"fp32", "tf32"}:
        _set_products("high" if tf32 else "highest")
        if hasattr(torch._C, "_set_fp32_precision_setter"):
            for operator in ("conv", "rnn"):
                torch._C._set_fp32_precision_setter("cuda", operator, "tf32" if tf32 else "ieee")
                torch._C._set_fp32_precision_setter("mkldnn", operator, "ieee")
        else:
            torch.backends.cudnn.allow_tf32 = tf32
    if products is not None:
        _set_products(products)


def _set_products(products: MatmulPrecision) -> None:
    """By torch's older interface, as compilers read it, unless the newer one is in use."""
    try:
        torch.get_float32_matmul_precision()
    except RuntimeError:
        # It was set by the newer interface; the older one would mix with it and stay mixed.
        modes = {"highest": ("ieee", "ieee"), "high": ("tf32", "tf32"), "medium": ("tf32", "bf16")}
        for backend, mode in zip(("cuda", "mkldnn"), modes[products], strict=True):
            torch._C._set_fp32_precision_setter(backend, "matmul", mode)
    else:
        torch.set_float32_matmul_precision(products)


def scaler_for(
    precision: Precision | None, device: torch.device, start: float | None = None
) -> GradScaler | None:
    """A gradient scaler for fp16, whose small gradients would vanish; none otherwise."""
    if precision != "fp16":
        return None
    return GradScaler(device.type) if start is None else GradScaler(device.type, init_scale=start)


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
    return matmul_precision() in {"high", "medium"}


def matmul_precision() -> str | None:
    """How exact products of fp32 matrices are; ``None`` where two interfaces were mixed."""
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:
        return None


def _name(dtype: torch.dtype) -> str:
    return _NAMES.get(dtype, str(dtype).removeprefix("torch."))
