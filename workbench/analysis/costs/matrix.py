"""FLOPs of matrix products and of recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Callable

from workbench.analysis.costs.cost import UNKNOWN_SHAPE, Call, Cost, Dims, UncountedError, lists_of

Formula = Callable[[Call], Cost]


def product(first: int, *, batched: bool = False) -> Formula:
    """(m × k) · (k × n), the factors being arguments ``first`` and the one behind it."""

    def cost(call: Call) -> Cost:
        a, b = call.dims(first), call.dims(first + 1)
        rank = 3 if batched else 2
        if len(a) != rank or len(b) != rank or a[-1] != b[-2] or a[:-2] != b[:-2]:
            raise UncountedError(UNKNOWN_SHAPE)
        batch = math.prod(a[:-2])
        added = call.bytes_of(0) if first and call.has(0) else 0
        return _gemm(call, first, batch * a[-2] * b[-1], a[-1], call.bytes_of(first + 1) + added)

    return cost


def summed_product(call: Call) -> Cost:
    """``addbmm``: the products of a batch, added up."""
    a, b = call.dims(1), call.dims(2)
    if len(a) != 3 or len(b) != 3 or a[-1] != b[-2]:
        raise UncountedError(UNKNOWN_SHAPE)
    return _gemm(call, 1, a[-2] * b[-1], a[0] * a[-1], call.bytes_of(2) + call.bytes_of(0))


def vector_product(first: int) -> Formula:
    """(m × n) · n."""

    def cost(call: Call) -> Cost:
        a, x = call.dims(first), call.dims(first + 1)
        if len(x) != 1 or not a or a[-1] != x[0]:
            raise UncountedError(UNKNOWN_SHAPE)
        return _gemm(call, first, math.prod(a[:-1]), a[-1], call.bytes_of(first + 1))

    return cost


def linear(call: Call) -> Cost:
    """The product x · Wᵀ for W of (out × in); x has any number of dimensions."""
    x, weight = call.dims(0), call.dims(1)
    if len(weight) != 2 or not x or x[-1] != weight[1]:
        raise UncountedError(UNKNOWN_SHAPE)
    bias = call.bytes_of(2) if call.has(2) else 0
    rows = math.prod(x[:-1])
    return _gemm(call, 0, rows * weight[0], x[-1], call.bytes_of(1) + bias)


def _gemm(call: Call, at: int, results: int, depth: int, other: int) -> Cost:
    return Cost(
        flops=2 * results * depth,
        bytes_read=call.bytes_of(at) + other,
        bytes_written=results * call.size_of(at),
        kind="gemm",
        dtype=call.dtype(at),
    )


def recurrent_list(call: Call) -> Cost:
    """Layers of cuDNN and MIOpen: every weight matrix meets every element of the sequence."""
    return _recurrent(call, call.dims(0), lists_of(call, 1), backward=False)


def recurrent_list_backward(call: Call) -> Cost:
    """Gradients of the input and of the weights: each as much as the forward pass."""
    return _recurrent(call, call.dims(0), lists_of(call, 1), backward=True)


def recurrent_layer(call: Call) -> Cost:
    """One layer in one direction, on the CPU: weights of the input and of the hidden state."""
    return _recurrent(call, call.dims(0), [call.dims(1), call.dims(2)], backward=False)


def recurrent_layer_backward(call: Call) -> Cost:
    """Its gradients of the input and of the weights."""
    return _recurrent(call, call.dims(0), [call.dims(1), call.dims(2)], backward=True)


def _recurrent(call: Call, x: Dims, weights: list[Dims], *, backward: bool) -> Cost:
    """Of LSTM, GRU or plain: gates, directions, layers and projections are in the weights."""
    matrices = [dims for dims in weights if len(dims) == 2]
    if len(x) != 3 or not matrices:
        raise UncountedError(UNKNOWN_SHAPE)
    steps, size = x[0] * x[1], call.size_of(0)
    elements = sum(math.prod(dims) for dims in matrices)
    hidden = matrices[-1][-1] if len(matrices) > 1 else matrices[0][0]
    moved = elements * size
    return Cost(
        flops=2 * steps * elements * (2 if backward else 1),
        bytes_read=call.bytes_of(0) + moved + (steps * hidden * size if backward else 0),
        bytes_written=call.bytes_of(0) + moved if backward else steps * hidden * size,
        kind="recurrent",
        dtype=call.dtype(0),
    )


MATRIX: dict[str, Formula] = {
    "aten::mm": product(0),
    "aten::_scaled_mm": product(0),
    "aten::bmm": product(0, batched=True),
    "aten::addmm": product(1),
    "aten::addmm_": product(1),
    "aten::_addmm_activation": product(1),
    "aten::baddbmm": product(1, batched=True),
    "aten::baddbmm_": product(1, batched=True),
    "aten::addbmm": summed_product,
    "aten::mv": vector_product(0),
    "aten::addmv": vector_product(1),
    "aten::addmv_": vector_product(1),
    "aten::dot": vector_product(0),
    "aten::linear": linear,
    "aten::mkldnn_linear": linear,
    "mkldnn::_linear_pointwise": linear,
    "aten::_cudnn_rnn": recurrent_list,
    "aten::miopen_rnn": recurrent_list,
    "aten::_cudnn_rnn_backward": recurrent_list_backward,
    "aten::miopen_rnn_backward": recurrent_list_backward,
    "aten::mkldnn_rnn_layer": recurrent_layer,
    "aten::mkldnn_rnn_layer_backward": recurrent_layer_backward,
}
