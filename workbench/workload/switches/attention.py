"""Which kernel ``scaled_dot_product_attention`` may use."""

from contextlib import ExitStack

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from workbench.errors import SettingError
from workbench.settings import Attention

_BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}
_KERNELS = {"cpu": ("flash", "math"), "cuda": ("flash", "efficient", "cudnn", "math")}
_KERNELS |= {"xpu": ("flash", "math"), "mps": ("math",)}


def attention_kernels(device: torch.device) -> tuple[Attention, ...]:
    """The kernels that torch has for ``device``; whether one takes given inputs shows in use."""
    known = _KERNELS.get(device.type, ("math",))
    if device.type == "cuda":
        cuda = torch.backends.cuda
        have = {
            "flash": cuda.is_flash_attention_available(),
            "cudnn": bool(torch.backends.cudnn.is_available()) and not torch.version.hip,  # type: ignore[no-untyped-call]
        }
        known = tuple(name for name in known if have.get(name, True))
    return known  # type: ignore[return-value]


def set_attention(kernel: Attention, device: torch.device, undo: ExitStack) -> None:
    """Allow only this kernel.

    Raises:
        SettingError: When torch has no such kernel for the device.
    """
    known = attention_kernels(device)
    if kernel not in known:
        raise SettingError(
            f"attention={kernel!r} cannot act on {device}: torch has {' and '.join(known)} there."
        )
    undo.enter_context(sdpa_kernel(_BACKENDS[kernel]))
