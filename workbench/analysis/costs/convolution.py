"""FLOPs of convolutions: forward and backward, strided, dilated, grouped, transposed.

A weight meets the data once for every position of its kernel: of the result, or of the input where
the convolution is transposed. So the multiplications are batch × positions × elements of the
weight, whatever the groups are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from workbench.analysis.costs.cost import NO_FLAGS, UNKNOWN_SHAPE, Call, Cost, Dims, UncountedError

Formula = Callable[[Call], Cost]


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where an operator takes its arguments; the transposition may be part of its name."""

    stride: int
    padding: int
    dilation: int | None
    transposed: int | bool = False
    output_padding: int | None = None
    groups: int | None = None
    bias: int | None = 2


def forward(at: Places) -> Formula:
    """The formula of one spelling of the forward pass."""

    def cost(call: Call) -> Cost:
        x, weight = call.dims(0), call.dims(1)
        if len(x) != len(weight) or len(x) < 3:
            raise UncountedError(UNKNOWN_SHAPE)
        turned = at.transposed if isinstance(at.transposed, bool) else call.flag(at.transposed)
        result = _result(call, at, x, weight, turned=turned)
        bias = call.bytes_of(at.bias) if at.bias is not None and call.has(at.bias) else 0
        positions = x if turned else result
        return Cost(
            flops=2 * x[0] * math.prod(positions[2:]) * math.prod(weight),
            bytes_read=call.bytes_of(0) + call.bytes_of(1) + bias,
            bytes_written=math.prod(result) * call.size_of(0),
            kind="convolution",
            dtype=call.dtype(0),
        )

    return cost


def _result(call: Call, at: Places, x: Dims, weight: Dims, *, turned: bool) -> Dims:
    if call.outputs:
        told = call.outputs[0]
        if isinstance(told, list | tuple) and len(told) == len(x):
            return tuple(int(n) for n in told)
    rank = len(x) - 2
    stride, padding = call.numbers(at.stride, rank), call.numbers(at.padding, rank)
    dilation = (1,) * rank if at.dilation is None else call.numbers(at.dilation, rank)
    spread = [d * (k - 1) + 1 for d, k in zip(dilation, weight[2:], strict=True)]
    if not turned:
        sizes = [
            (n + 2 * p - k) // s + 1
            for n, p, k, s in zip(x[2:], padding, spread, stride, strict=True)
        ]
        return (x[0], weight[0], *sizes)
    if at.output_padding is None or at.groups is None:
        raise UncountedError(NO_FLAGS)
    more, groups = call.numbers(at.output_padding, rank), call.numbers(at.groups, 1)[0]
    sizes = [
        (n - 1) * s - 2 * p + k + o
        for n, s, p, k, o in zip(x[2:], stride, padding, spread, more, strict=True)
    ]
    return (x[0], weight[1] * groups, *sizes)


def backward(call: Call) -> Cost:
    """Gradients of the input and of the weight, where asked for: each as much as the forward."""
    grad, x, weight = call.dims(0), call.dims(1), call.dims(2)
    if not len(grad) == len(x) == len(weight) or len(x) < 3:
        raise UncountedError(UNKNOWN_SHAPE)
    turned, asked = call.flag(7), call.value(10)
    if not isinstance(asked, list) or len(asked) != 3:
        raise UncountedError(NO_FLAGS)
    positions = x if turned else grad
    once = 2 * x[0] * math.prod(positions[2:]) * math.prod(weight)
    size = call.size_of(0)
    written = (call.bytes_of(1), call.bytes_of(2), grad[1] * size)
    read = (call.bytes_of(2) if asked[0] else 0) + (call.bytes_of(1) if asked[1] else 0)
    return Cost(
        flops=once * (bool(asked[0]) + bool(asked[1])),
        bytes_read=call.bytes_of(0) + read,
        bytes_written=sum(n for n, wanted in zip(written, asked, strict=True) if wanted),
        kind="convolution",
        dtype=call.dtype(0),
    )


_ATEN = forward(Places(stride=3, padding=4, dilation=5, transposed=6, output_padding=7, groups=8))
_LIBRARY = forward(Places(stride=4, padding=3, dilation=5, groups=6))
_DEPTHWISE = forward(Places(stride=4, padding=5, dilation=6, bias=3))

CONVOLUTION: dict[str, Formula] = {
    "aten::convolution": _ATEN,
    "aten::_convolution": _ATEN,
    "aten::convolution_overrideable": _ATEN,
    "aten::mkldnn_convolution": _LIBRARY,
    "aten::miopen_convolution": _LIBRARY,
    "aten::miopen_depthwise_convolution": _LIBRARY,
    "mkldnn::_convolution_pointwise": _LIBRARY,
    "aten::cudnn_convolution": forward(
        Places(stride=3, padding=2, dilation=4, groups=5, bias=None)
    ),
    "aten::cudnn_convolution_relu": forward(Places(stride=3, padding=4, dilation=5, groups=6)),
    "aten::cudnn_convolution_transpose": forward(
        Places(
            stride=4, padding=2, dilation=5, transposed=True, output_padding=3, groups=6, bias=None
        )
    ),
    "aten::miopen_convolution_transpose": forward(
        Places(stride=5, padding=3, dilation=6, transposed=True, output_padding=4, groups=7)
    ),
    "aten::_conv_depthwise2d": _DEPTHWISE,
    "aten::conv_depthwise3d": _DEPTHWISE,
    "aten::_slow_conv2d_forward": forward(Places(stride=4, padding=5, dilation=None, bias=3)),
    "aten::slow_conv_dilated2d": _DEPTHWISE,
    "aten::slow_conv3d_forward": forward(Places(stride=4, padding=5, dilation=None, bias=3)),
    "aten::convolution_backward": backward,
    "aten::convolution_backward_overrideable": backward,
}
