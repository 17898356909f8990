"""FLOPs of attention in every back end that is one operator; the others are products and softmax.

Of causal attention only the pairs that are not masked count: query i meets the first i + 1 keys.
The backward pass of a fused back end computes the scores once more, which is told apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.analysis.costs.cost import (
    NO_FLAGS,
    UNKNOWN_SHAPE,
    VARYING,
    Call,
    Cost,
    UncountedError,
)

Formula = Callable[[Call], Cost]


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where an operator takes its arguments."""

    causal: int
    heads_first: bool = True
    """(batch, heads, length, size), otherwise (batch, length, heads, size)."""
    bias: int | None = None
    lengths: int | None = None
    """The argument with the offsets of packed sequences, if given."""
    backward: bool = False
    window: tuple[int, int] | None = None
    """Arguments of a sliding window; −1 is none."""


def pairs(queries: int, keys: int, *, causal: bool) -> int:
    """How many queries meet how many keys; causal counts from the first query and key on."""
    if not causal:
        return queries * keys
    full = min(queries, keys)
    return full * (full + 1) // 2 + max(0, queries - keys) * keys


def attention(at: Places) -> Formula:
    """The formula of one spelling."""
    first = 1 if at.backward else 0

    def cost(call: Call) -> Cost:
        if at.lengths is not None and call.has(at.lengths):
            raise UncountedError(VARYING)
        if at.window is not None and any(call.value(place) != -1 for place in at.window):
            raise UncountedError(NO_FLAGS)
        q, k, v = (call.dims(first + i) for i in range(3))
        if not len(q) == len(k) == len(v) == 4 or q[-1] != k[-1]:
            raise UncountedError(UNKNOWN_SHAPE)
        heads, length = (1, 2) if at.heads_first else (2, 1)
        met = pairs(q[length], k[length], causal=_causal(call, at.causal))
        once = 2 * q[0] * q[heads] * met
        size = call.size_of(first)
        out = q[0] * q[heads] * q[length] * v[-1] * size
        inputs = sum(call.bytes_of(first + i) for i in range(3))
        masks = call.bytes_of(at.bias) if at.bias is not None and call.has(at.bias) else 0
        scores, values = once * q[-1], once * v[-1]
        if not at.backward:
            return _cost(call, scores + values, inputs + masks, out)
        # Scores again and their gradient to q and to k; of the result to the weights and to v.
        flops = 3 * scores + 2 * values
        return _cost(call, flops, inputs + masks + 2 * out, inputs, recomputed=scores)

    def _cost(call: Call, flops: int, read: int, written: int, recomputed: int = 0) -> Cost:
        return Cost(
            flops=flops,
            bytes_read=read,
            bytes_written=written,
            kind="attention",
            dtype=call.dtype(first),
            recomputed=recomputed,
        )

    return cost


def _causal(call: Call, at: int) -> bool:
    """A truth; in one spelling the number of a mask: 0 none, 1 from the first query on."""
    found = call.value(at)
    if found in (0, 1):
        return bool(found)
    raise UncountedError(NO_FLAGS)


ATTENTION: dict[str, Formula] = {
    "aten::_scaled_dot_product_flash_attention": attention(Places(causal=4)),
    "aten::_scaled_dot_product_flash_attention_for_cpu": attention(Places(causal=4, bias=5)),
    "aten::_scaled_dot_product_efficient_attention": attention(Places(causal=6, bias=3)),
    "aten::_scaled_dot_product_cudnn_attention": attention(Places(causal=6, bias=3)),
    "aten::_scaled_dot_product_fused_attention_overrideable": attention(Places(causal=5, bias=3)),
    "aten::_scaled_dot_product_flash_attention_backward": attention(
        Places(causal=11, lengths=6, backward=True)
    ),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": attention(
        Places(causal=7, bias=8, backward=True)
    ),
    "aten::_scaled_dot_product_efficient_attention_backward": attention(
        Places(causal=11, bias=4, backward=True)
    ),
    "aten::_scaled_dot_product_cudnn_attention_backward": attention(
        Places(causal=14, bias=8, lengths=9, backward=True)
    ),
    "aten::_flash_attention_forward": attention(Places(causal=8, heads_first=False, lengths=3)),
    "aten::_flash_attention_backward": attention(
        Places(causal=11, heads_first=False, lengths=6, backward=True)
    ),
    "aten::_efficient_attention_forward": attention(
        Places(causal=9, heads_first=False, bias=3, lengths=4)
    ),
    "aten::_efficient_attention_backward": attention(
        Places(causal=14, heads_first=False, bias=4, lengths=6, backward=True)
    ),
    "aten::_cudnn_attention_forward": attention(Places(causal=9, bias=3, lengths=4)),
    "flash_attn::_flash_attn_forward": attention(
        Places(causal=5, heads_first=False, window=(6, 7))
    ),
}


def packed(call: Call) -> Cost:
    """FlashAttention 3 on packed sequences: no batch dimension, lengths in the data."""
    raise UncountedError(VARYING if len(call.dims(0)) == 3 else NO_FLAGS)


ATTENTION |= {f"flash_attn_3::{name}": packed for name in ("fwd", "bwd")}
VARIABLE_LENGTH = (
    "flash_attn::_flash_attn_varlen_forward",
    "flash_attn::_flash_attn_varlen_backward",
)
"""Sequences of different lengths packed into one: never countable by shape."""
