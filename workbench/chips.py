"""What accelerators of each generation compute by themselves, by vendor and generation.

A number such as ``9.0`` means something else with each vendor: Hopper with NVIDIA, Vega to CDNA 2
with AMD. So every question names the type of the device (``cuda``, ``hip``, ...), and only numbers
of CUDA devices are compute capabilities.

Sources: CUDA C++ Programming Guide (arithmetic by compute capability), NVIDIA's GTX 16 series
datasheets, ROCm's list of matrix instructions by gfx target, Triton's and torch's own tests for
fp8. What a table does not know is ``None``, so that no advice is built on it.
"""

import re

CUDA_LEAST = {"fp16": (7, 0), "bf16": (8, 0), "tf32": (8, 0), "fp8": (8, 9)}
"""Compute capability from which tensor cores take the type."""
WITHOUT_TENSOR_CORES = re.compile(r"\bGTX\b|\bMX ?[1-5]\d0\b|\bT(400|500|550|600|1000|1200)\b")
"""Turing chips that lack them (TU116, TU117), although their capability is 7.5."""
MATRIX_GFX = re.compile(r"^gfx(908|90a|94[\dX]|95[\dX]|11\d[\dX]|12\d[\dX])")
_GFX = {
    "fp16": MATRIX_GFX,
    "bf16": MATRIX_GFX,
    "tf32": re.compile(r"^gfx94[\dX]"),
    "fp8": re.compile(r"^gfx(94[\dX]|95[\dX]|12\d[\dX])"),
}
_GFX_90 = (
    (re.compile(r"\bMI2\d\dX?\b"), "gfx90a"),
    (re.compile(r"\bMI1\d\d\b"), "gfx908"),
    (re.compile(r"\bMI[56]0\b"), "gfx906"),
    (re.compile(r"\bMI25\b"), "gfx900"),
)
"""Targets of AMD's version 9.0 by product: only the last two of them lack matrix cores."""
_CAPABILITY = re.compile(r"^(?:sm_?(\d+?)(\d)[af]?|(\d+)\.(\d+))$")


def capability(kind: str | None, arch: str | None) -> tuple[int, int] | None:
    """Compute capability of a CUDA device from ``sm_80`` or ``8.0``; ``None`` for anything else."""
    found = _CAPABILITY.match(arch or "") if kind == "cuda" else None
    if found is None:
        return None
    major, minor = [part for part in found.groups() if part is not None]
    return int(major), int(minor)


def generation(kind: str, name: str, major: int, minor: int) -> str:
    """What a device's version numbers say: ``8.0`` for NVIDIA, a gfx target or family for AMD.

    AMD's numbers leave out the last digit of the target, so ``gfx94X`` stands for gfx940 to 942;
    of version 9.0 the product's name tells it. Other vendors' numbers are kept as they are.
    """
    if kind != "hip":
        return f"{major}.{minor}"
    if (major, minor) == (9, 0):
        return next((gfx for sign, gfx in _GFX_90 if sign.search(name)), "gfx90X")
    return f"gfx{major}{minor:x}X"


def generation_text(kind: str, arch: str) -> str:
    """The generation as people say it: ``compute capability 8.0``, or AMD's ``gfx90a``."""
    known = capability(kind, arch)
    if known is not None:
        return f"compute capability {known[0]}.{known[1]}"
    return arch.partition(":")[0] or "generation not recorded"


def tensor_cores(kind: str | None, name: str | None, arch: str | None) -> bool | None:
    """Whether the device has tensor cores (matrix cores); ``None`` where nobody can tell."""
    known = capability(kind, arch)
    if known is not None:
        if known < CUDA_LEAST["fp16"]:
            return False
        if known == (7, 5):
            return None if not name else WITHOUT_TENSOR_CORES.search(name) is None
        return True
    return _gfx_has(MATRIX_GFX, arch)


def native(dtype: str, kind: str | None, name: str | None, arch: str | None) -> bool | None:
    """Whether the device's matrix units take ``dtype`` (fp32, tf32, bf16, fp16, fp8)."""
    if dtype == "fp32":
        return True
    known = capability(kind, arch)
    if known is not None:
        return known >= CUDA_LEAST[dtype] and tensor_cores(kind, name, arch) is not False
    return _gfx_has(_GFX[dtype], arch)


def _gfx_has(which: re.Pattern[str], arch: str | None) -> bool | None:
    """Whether a gfx target is among ``which``; ``None`` for no target, or one of several."""
    if not arch or not arch.startswith("gfx") or arch.startswith("gfx90X"):
        return None
    return which.match(arch) is not None
