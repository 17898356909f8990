"""Bytes of operators that the memory limits: the least that they can read and write."""

from __future__ import annotations

import math
from collections.abc import Callable

from workbench.analysis.costs.cost import (
    NO_FLAGS,
    UNKNOWN_SHAPE,
    Call,
    Cost,
    UncountedError,
    lists_of,
)

Formula = Callable[[Call], Cost]


def nothing(_: Call) -> Cost:
    """Views, empty memory and reading one number: no data moves."""
    return _moved(0, 0, "view")


def elementwise(arity: int, *, truth: bool = False) -> Formula:
    """A result for every element: the broadcast of the first ``arity`` tensors.

    Args:
        arity: How many inputs; a tensor behind them is where the result goes.
        truth: Whether the result is true or false, of one byte.
    """

    def cost(call: Call) -> Cost:
        inputs = call.tensors(arity)
        if not inputs:
            raise UncountedError(UNKNOWN_SHAPE)
        count = math.prod(_broadcast(call, inputs))
        wide = max(call.size_of(at) for at in inputs)
        read = sum(call.bytes_of(at) for at in inputs)
        return _moved(read, count * (1 if truth else wide), "elementwise")

    return cost


def _broadcast(call: Call, inputs: list[int]) -> list[int]:
    shapes = [call.dims(at) for at in inputs]
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(dims)) + dims for dims in shapes]
    return [0 if 0 in sizes else max(sizes) for sizes in zip(*padded, strict=True)]


def fill(call: Call) -> Cost:
    """Writes every element and reads none."""
    return _moved(0, call.bytes_of(0), "fill")


def copy(call: Call) -> Cost:
    """``copy_(to, from)``: also a cast, a transfer, a change of layout."""
    return _moved(call.bytes_of(1), math.prod(call.dims(0)) * call.size_of(0), "copy")


def clone(call: Call) -> Cost:
    """A copy of the same type."""
    return _moved(call.bytes_of(0), math.prod(call.dims(0)) * call.size_of(0), "copy")


def concatenation(call: Call) -> Cost:
    """``cat``: every part read and written once."""
    total = sum(math.prod(dims) for dims in lists_of(call, 0)) * call.size_of(0)
    return _moved(total, total, "copy")


def embedding(call: Call) -> Cost:
    """A row of the table for every index."""
    table, count = call.dims(0), math.prod(call.dims(1))
    rows = count * math.prod(table[1:]) * call.size_of(0)
    return _moved(rows + call.bytes_of(1), rows, "embedding")


def embedding_backward(call: Call) -> Cost:
    """The gradient of the whole table, from a row for every index."""
    grad = call.dims(0)
    rows = call.numbers(2, 1)[0]
    written = rows * grad[-1] * call.size_of(0)
    return _moved(call.bytes_of(0) + call.bytes_of(1), written, "embedding")


def row_selection(call: Call) -> Cost:
    """``index_select(table, dim, index)``."""
    table, count = call.dims(0), math.prod(call.dims(2))
    dim = call.numbers(1, 1)[0]
    if not table or table[dim] == 0:
        raise UncountedError(UNKNOWN_SHAPE)
    taken = math.prod(table) // table[dim] * count * call.size_of(0)
    return _moved(taken + call.bytes_of(2), taken, "embedding")


def embedding_bag(call: Call) -> Cost:
    """A sum of rows for every bag."""
    width = math.prod(call.dims(0)[1:]) * call.size_of(0)
    read = math.prod(call.dims(1)) * width + call.bytes_of(1) + call.bytes_of(2)
    return _moved(read, math.prod(call.dims(2)) * width, "embedding")


def normalisation(call: Call) -> Cost:
    """Reads the data and the parameters once, writes as much as the data."""
    read = sum(call.bytes_of(at) for at in call.tensors())
    return _moved(read, call.bytes_of(0), "normalisation")


def normalisation_backward(weight: int) -> Formula:
    """Reads everything, writes the gradients of the data and of weight and bias."""

    def cost(call: Call) -> Cost:
        read = sum(call.bytes_of(at) for at in call.tensors())
        more = 2 * call.bytes_of(weight) if call.has(weight) else 0
        return _moved(read, call.bytes_of(1) + more, "normalisation")

    return cost


def softmax(call: Call) -> Cost:
    """One read, one write of every element."""
    return _moved(call.bytes_of(0), math.prod(call.dims(0)) * call.size_of(0), "softmax")


def softmax_backward(call: Call) -> Cost:
    """Reads the gradient and the result, writes a gradient."""
    read = call.bytes_of(0) + call.bytes_of(1)
    return _moved(read, math.prod(call.dims(1)) * call.size_of(1), "softmax")


def reduction(call: Call) -> Cost:
    """Reads everything; of the result its known size, or one element where it is the whole."""
    dims = call.dims(0)
    kept = 1
    told = call.value(1) if len(call.values) > 1 else ""
    over = [told] if type(told) is int else told
    if isinstance(over, list) and over and dims:
        if not all(type(n) is int for n in over):
            raise UncountedError(NO_FLAGS)
        gone = {n % len(dims) for n in over}
        kept = math.prod(n for at, n in enumerate(dims) if at not in gone)
    return _moved(call.bytes_of(0), kept * call.size_of(0), "reduction")


def loss(call: Call) -> Cost:
    """``nll_loss_forward``: one element a target."""
    count = math.prod(call.dims(1))
    read = count * call.size_of(0) + call.bytes_of(1)
    return _moved(read, call.size_of(0), "reduction")


def loss_backward(call: Call) -> Cost:
    """``nll_loss_backward(grad, input, target)``: writes the whole gradient."""
    return _moved(call.bytes_of(0) + call.bytes_of(2), call.bytes_of(1), "elementwise")


def pooling(call: Call) -> Cost:
    """Windows of the data; the size of the result as recorded, or from kernel and stride."""
    return _moved(call.bytes_of(0), math.prod(_pooled(call)) * call.size_of(0), "pooling")


def pooling_with_indices(call: Call) -> Cost:
    """The same, and where each maximum was (8 bytes)."""
    count = math.prod(_pooled(call))
    return _moved(call.bytes_of(0), count * (call.size_of(0) + 8), "pooling")


def _pooled(call: Call) -> tuple[int, ...]:
    dims = call.dims(0)
    rank = 1 if "1d" in call.operator else 3 if "3d" in call.operator else 2
    if call.outputs and isinstance(call.outputs[0], list | tuple):
        return tuple(call.outputs[0])
    if "adaptive" in call.operator:
        return (*dims[:-rank], *call.numbers(1, rank))
    kernel = call.numbers(1, rank)
    stride = call.numbers(2, rank) if call.value(2) not in ([], "") else kernel
    padding = call.numbers(3, rank)
    max_pool = "max" in call.operator
    dilation = call.numbers(4, rank) if max_pool else (1,) * rank
    if call.flag(5 if max_pool else 4):
        raise UncountedError(NO_FLAGS)  # sizes rounded up: told by the recorder only
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(dims[-rank:], kernel, stride, padding, dilation, strict=True)
    ]
    return (*dims[:-rank], *sizes)


def pooling_backward(call: Call) -> Cost:
    """Reads the gradient (and the places of maxima), writes a gradient of the data."""
    places = [at for at in call.tensors() if at not in (0, 1)]
    read = call.bytes_of(0) + sum(call.bytes_of(at) for at in places)
    return _moved(read, call.bytes_of(1), "pooling")


def resampling(call: Call) -> Cost:
    """``upsample_*``: every source element read, every target element written."""
    dims = call.dims(0)
    rank = len(dims) - 2
    target = call.numbers(1, rank)
    return _moved(
        call.bytes_of(0), math.prod(dims[:2]) * math.prod(target) * call.size_of(0), "pooling"
    )


def optimizer_step(groups: int) -> Formula:
    """A fused optimizer: reads parameters, gradients and state, writes all but the gradients.

    Args:
        groups: How many of the leading lists are as large as the parameters.
    """

    def cost(call: Call) -> Cost:
        size = call.size_of(0)
        sizes = [
            sum(math.prod(dims) for dims in lists_of(call, at)) * size
            for at in range(groups)
            if call.shapes[at : at + 1] not in ([], [[]])
        ]
        if len(sizes) < 2:
            raise UncountedError(UNKNOWN_SHAPE)
        return _moved(sum(sizes), sum(sizes) - sizes[1], "optimizer")

    return cost


def foreach(call: Call) -> Cost:
    """A list operator: reads its lists, writes as much as the first."""
    lists = [
        at
        for at, shape in enumerate(call.shapes)
        if isinstance(shape, list) and shape and isinstance(shape[0], list)
    ]
    if not lists or lists[0] != 0:
        raise UncountedError(UNKNOWN_SHAPE)
    sizes = [sum(math.prod(dims) for dims in lists_of(call, at)) for at in lists]
    size = call.size_of(0)
    if call.operator.startswith(("aten::_foreach_zero", "aten::_foreach_fill")):
        return _moved(0, sizes[0] * size, "optimizer")
    if call.operator.startswith("aten::_foreach_copy"):
        return _moved(sizes[-1] * size, sizes[0] * size, "optimizer")
    if call.operator.startswith("aten::_foreach_norm"):
        return _moved(sizes[0] * size, len(call.shapes[0]) * size, "optimizer")
    return _moved(sum(sizes) * size, sizes[0] * size, "optimizer")


def _moved(read: int, written: int, kind: str) -> Cost:
    return Cost(flops=0, bytes_read=read, bytes_written=written, kind=kind)
