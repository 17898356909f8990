"""What accelerators of each generation compute by themselves, told from their name and generation.

Sources: CUDA C++ Programming Guide (arithmetic by compute capability), NVIDIA's GTX 16 series
datasheets, ROCm's list of matrix instructions by gfx target, Triton's and torch's own tests for
fp8. What a table does not know is ``None``, so that no advice is built on it.
"""

import re

CUDA_LEAST = {"fp16": (7, 0), "bf16": (8, 0), "tf32": (8, 0), "fp8": (8, 9)}
"""Compute capability from which tensor cores take the type."""
WITHOUT_TENSOR_CORES = re.compile(r"\bGTX\b|\bMX ?[1-5]\d0\b|\bT(400|500|550|600|1000|1200)\b")
"""Turing chips that lack them (TU116, TU117), although their capability is 7.5."""
MATRIX_GFX = re.compile(r"^gfx(908|90a|94\d|950|11\d\d|12\d\d)")
_GFX = {
    "fp16": MATRIX_GFX,
    "bf16": MATRIX_GFX,
    "tf32": re.compile(r"^gfx94\d"),
    "fp8": re.compile(r"^gfx(94\d|950|12\d\d)"),
}
_CAPABILITY = re.compile(r"^(?:sm_?(\d+?)(\d)[af]?|(\d+)\.(\d+))$")


def capability(arch: str | None) -> tuple[int, int] | None:
    """Compute capability from ``sm_80`` or ``8.0``; ``None`` for anything else."""
    found = _CAPABILITY.match(arch or "")
    if found is None:
        return None
    major, minor = [part for part in found.groups() if part is not None]
    return int(major), int(minor)


def tensor_cores(name: str | None, arch: str | None) -> bool | None:
    """Whether the device has tensor cores (matrix cores); ``None`` where nobody can tell."""
    known = capability(arch)
    if known is not None:
        if known < CUDA_LEAST["fp16"]:
            return False
        if known == (7, 5):
            return None if not name else WITHOUT_TENSOR_CORES.search(name) is None
        return True
    if arch and arch.startswith("gfx"):
        return MATRIX_GFX.match(arch) is not None
    return None


def native(dtype: str, name: str | None, arch: str | None) -> bool | None:
    """Whether the device's matrix units take ``dtype`` (fp32, tf32, bf16, fp16, fp8)."""
    if dtype == "fp32":
        return True
    known = capability(arch)
    if known is not None:
        return known >= CUDA_LEAST[dtype] and tensor_cores(name, arch) is not False
    if arch and arch.startswith("gfx"):
        return _GFX[dtype].match(arch) is not None
    return None
