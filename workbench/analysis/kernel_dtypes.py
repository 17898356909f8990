"""In which type a matrix kernel computes, as far as its name tells; and which types operators took.

The table is data, as in ``families``: the first row that matches wins. TF32 is fp32 data multiplied
on tensor cores. A name that tells nothing is ``None``.
"""

import re
from functools import lru_cache

LOW = frozenset({"bf16", "fp16", "half", "fp8"})
"""Types below fp32; ``half`` where a name says that it is one of the two, but not which."""

KERNEL_PATTERNS: tuple[tuple[str, str], ...] = (
    # cuBLAS names its newest kernels by the letters of their types: tst is bf16, hsh fp16.
    ("fp8", r"nvjet_(sm\d+_)?[qoe]|e4m3|e5m2|fp8"),
    ("bf16", r"nvjet_(sm\d+_)?t|bf16|bfloat16|_bbs_|_bss_"),
    ("fp16", r"nvjet_(sm\d+_)?h|fp16|_half|(?<!t)f16(?!f)|hgemm|h(16816|1688|884)|_hhs_|_hss_"),
    ("tf32", r"nvjet_(sm\d+_)?s|tf32|s(1688|16816|884)(gemm|fprop|dgrad|wgrad|_)"),
    # FlashAttention has no fp32 form.
    ("half", r"flash_?(fwd|bwd)_?\w*kernel|flashattn(fwd|bwd)sm|pytorch_flash"),
    ("fp32", r"sgemm|simt|scudnn|f32f32_f32|ffma|_sb_|s?cudnn_\d+x\d+|fmha_cutlass\w*_f32"),
)
"""Type and regular expression, tried in this order on the lower-case name."""

_KERNEL = tuple((dtype, re.compile(pattern)) for dtype, pattern in KERNEL_PATTERNS)
_TYPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("fp8", re.compile(r"float8", re.IGNORECASE)),
    ("bf16", re.compile(r"bfloat16", re.IGNORECASE)),
    ("fp16", re.compile(r"c10::half|float16|\bhalf\b", re.IGNORECASE)),
    ("fp32", re.compile(r'"float"|float32')),
)


@lru_cache(maxsize=65536)
def kernel_dtype(name: str) -> str | None:
    """The type in which a matrix kernel multiplies, as in the table; ``None`` for unknown."""
    lower = name.lower()
    return next((dtype for dtype, pattern in _KERNEL if pattern.search(lower)), None)


def operator_dtype(types: str) -> str | None:
    """The lowest type among an operator's inputs, from its recorded ``Input type``."""
    return next((dtype for dtype, pattern in _TYPES if pattern.search(types)), None)
