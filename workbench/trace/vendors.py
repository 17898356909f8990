"""Whose the devices of a trace are, by the evidence in it: versions, categories, processes, names.

Builds for AMD write CUDA's categories (``cuda_runtime``), so those count last, after the names of
calls and kernels. Where nothing tells, the type is ``other``: no vendor is assumed.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

UNKNOWN = "other"

HEADER_SIGNS: tuple[tuple[str, str], ...] = (
    ("roctracer_version", "hip"),
    ("hip_runtime_version", "hip"),
    ("rocprofiler_version", "hip"),
    ("cupti_version", "cuda"),
    ("cuda_runtime_version", "cuda"),
)
"""Keys of the header."""

CATEGORY_SIGNS: tuple[tuple[str, str], ...] = (
    ("mtia_", "mtia"),
    ("mlu_", "mlu"),
    ("xpu_", "xpu"),
    ("hpu_", "hpu"),
    ("async_npu", "npu"),
    ("npu_", "npu"),
    ("hip_", "hip"),
)
"""How categories begin that only one vendor's build writes."""

NAME_SIGNS: tuple[tuple[str, str], ...] = (
    ("hip", r"^hip[A-Z]\w*$|Cijk_|__amd_rocclr_|^_ZN2ck|\bck_tile::|MIOpen|^rocblas|^rccl"),
    ("xpu", r"^ur[A-Z]\w*$|^ze[A-Z]\w*$|\bat::native::xpu::|\bsycl::|^xpu"),
    ("npu", r"^acl(rt|nn|op)?[A-Z]\w*$|^hcom_|^Ascend"),
    ("mlu", r"^cnrt[A-Z]\w*$|^cnInvoke|^cncl|^MLU[A-Z]"),
    ("hpu", r"^syn[A-Z]\w*$|^habana"),
    ("mtia", r"^mtia"),
    (
        "cuda",
        r"^cuda[A-Z]\w*$|^cu[A-Z]\w*$|^(void )?cutlass|cudnn|cublas|^nvjet_|^ncclKernel"
        r"|^(volta|turing|ampere|maxwell|hopper)_|^sm\d\d+_|^(void )?at::native::.*cuda",
    ),
)
"""Type, and the pattern on the names of calls and kernels; tried in this order."""

CUDA_CATEGORIES = ("cuda_", "concurrent_kernel")
"""Categories of CUDA's build, and of any that copied it."""

_LOOKED_AT = 200
_NAMES = tuple((kind, re.compile(pattern, re.M)) for kind, pattern in NAME_SIGNS)


def vendor(
    header: Mapping[str, Any],
    categories: tuple[str, ...],
    processes: set[str],
    names: Callable[[], Iterable[str]] = tuple,
) -> str:
    """The type of the devices where their own names do not tell it; ``other`` if nothing does.

    ``names`` gives those of calls and device work; it is called only where nothing else tells.
    """
    for sign, kind in HEADER_SIGNS:
        if sign in header:
            return kind
    for sign, kind in CATEGORY_SIGNS:
        if any(category.startswith(sign) for category in categories):
            return kind
    if "Ascend Hardware" in processes:
        return "npu"
    if "CUDA functions" in processes:
        return "cuda"
    text = "\n".join(name[:_LOOKED_AT] for name in names())
    for kind, pattern in _NAMES:
        if pattern.search(text):
            return kind
    copied = any(category.startswith(CUDA_CATEGORIES) for category in categories)
    return "cuda" if copied else UNKNOWN
