"""Which low-precision types this processor computes by itself, and which it only imitates."""

import platform
from typing import Any

LOW_PRECISION = ("bf16", "fp16")


def native_dtypes() -> dict[str, bool | None]:
    """Whether bf16 and fp16 are native on this CPU; ``None`` where torch does not tell.

    An imitated type converts to fp32 and back and was measured up to 500 times slower
    (pytorch #146508). oneDNN's own check counts AVX-512 without bf16 instructions as support, so
    on x86 the instructions themselves must be there as well.
    """
    try:
        import torch
    except ImportError:
        return dict.fromkeys(LOW_PRECISION)
    found = {name: _mkldnn(f"_is_mkldnn_{name}_supported") for name in LOW_PRECISION}
    if found["bf16"] and platform.machine().lower() in ("x86_64", "amd64"):
        checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        answers = [bool(getattr(torch.cpu, name)()) for name in checks if hasattr(torch.cpu, name)]
        found["bf16"] = any(answers) if answers else None
    return found


def _mkldnn(check: str) -> bool | None:
    import torch

    mkldnn: Any = torch.backends.mkldnn
    if not mkldnn.is_available():
        return None
    try:
        return bool(getattr(torch.ops.mkldnn, check)())
    except (AttributeError, RuntimeError):
        return None
