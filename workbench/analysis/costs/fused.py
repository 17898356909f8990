"""Kernels that a compiler wrote: what their parent record and its tensors tell.

Inductor writes one host record for each Triton kernel, with all its tensors. A pointwise or
reducing kernel touches each at least once; a template multiplies the first two. Which tensor is
read and which is written is not told: the last one is taken as the result.
"""

from __future__ import annotations

import math
import re

from workbench.analysis.costs.cost import NO_FORMULA, UNKNOWN_SHAPE, Call, Cost, UncountedError

FUSED = re.compile(r"^triton_(poi|red|per|tem)_")
_PRODUCT = re.compile(r"^triton_tem_\w*?_?(bmm|mm|addmm|baddbmm)(_|$)")
_PARTS = re.compile(
    r"embedding|index|gather|scatter|select|slice|narrow|split|pool|conv|upsample|cat|roll|flip"
    r"|constant_pad|unfold|sort|topk|attention|nll_loss"
)
"""Operators that read or write a part of a tensor, so that its size says nothing."""


def fused(call: Call) -> Cost:
    """The cost of a Triton kernel from all its tensors."""
    tensors = call.tensors()
    if len(tensors) < 2:
        raise UncountedError(UNKNOWN_SHAPE)
    if call.operator.startswith("triton_tem_"):
        return _template(call, tensors)
    if _PARTS.search(call.operator):
        raise UncountedError(NO_FORMULA)
    read = sum(call.bytes_of(at) for at in tensors[:-1])
    return Cost(flops=0, bytes_read=read, bytes_written=call.bytes_of(tensors[-1]), kind="fused")


def _template(call: Call, tensors: list[int]) -> Cost:
    """A product whose factors fit its result in exactly one way."""
    result = call.dims(tensors[-1])
    matrices = [at for at in tensors[:-1] if len(call.dims(at)) == len(result) >= 2]
    if not _PRODUCT.match(call.operator):
        raise UncountedError(NO_FORMULA)
    fits = [
        (a, b)
        for a in matrices
        for b in matrices
        if a < b
        and call.dims(a)[-1] == call.dims(b)[-2]
        and (*call.dims(a)[:-1], call.dims(b)[-1]) == result
        and call.dims(a)[:-2] == call.dims(b)[:-2]
    ]
    if len(fits) != 1:
        raise UncountedError(UNKNOWN_SHAPE)
    a, _ = fits[0]
    return Cost(
        flops=2 * math.prod(result) * call.dims(a)[-1],
        bytes_read=sum(call.bytes_of(at) for at in tensors[:-1]),
        bytes_written=call.bytes_of(tensors[-1]),
        kind="gemm",
        dtype=call.dtype(a),
    )
