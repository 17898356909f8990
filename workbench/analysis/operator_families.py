"""Where the framework's operators spend the host's time, by family: the kernels of a CPU.

The table is data, tried from the top; what nothing matches is ``other`` and stays visible.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.causes import range_cause
from workbench.analysis.operators import operator_calls
from workbench.analysis.steady import inside

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from workbench.analysis.launches import Launches
    from workbench.trace.table import Trace

OPERATOR_FAMILY_COLUMNS = ("family", "calls", "host_self_ns", "share", "most_in")
OTHER = "other"

OPERATOR_FAMILIES: tuple[tuple[str, str], ...] = (
    ("compiled", r"^Torch-Compiled|^CompiledFunction|^## Call CompiledFxGraph|^triton_|^graph_\d"),
    ("communication", r"^_?c10d|^record_param_comms|^(gloo|nccl|mpi|ucc):"),
    ("optimizer", r"^Optimizer\.|::_foreach_|::_fused_(adam|adamw|sgd|adagrad)_"),
    ("autograd engine", r"^autograd::engine|^torch::autograd::|Backward\d*$|AccumulateGrad$"),
    ("attention", r"attention|_flash_|_efficient_|flash_attn|fmha"),
    ("convolution", r"conv(olution|\d?d|_transpose|_depthwise)"),
    ("recurrent", r"::_?(thnn_)?(fused_)?(lstm|gru|rnn)|mkldnn_rnn"),
    (
        "gemm",
        r"::_?(add|badd)?(mm|bmm|mv|matmul|linear|addr|dot|einsum|scaled_mm|weight_int\w*mm)"
        r"(_backward|_out|_)?$|mkl(dnn)?_linear|linear_pointwise|::tensordot|gemm|matmul|aclnn\w*mm$",
    ),
    ("softmax", r"softmax"),
    ("normalisation", r"_?norm(_|$|\d)|normali[sz]e"),
    ("loss", r"loss|cross_entropy"),
    ("embedding", r"(?<!rotary_)embedding|permute_pooled"),
    ("pooling", r"pool\d|upsample|interpolate|grid_sampl"),
    (
        "random",
        r"::(rand|normal_|uniform_|bernoulli|multinomial|dropout|native_dropout|exponential)",
    ),
    ("sort and index", r"::_?(sort|topk|unique|argsort|gather|scatter|index|nonzero|masked|where)"),
    (
        "copy",
        r"::_?(copy_|to_copy|to|clone|contiguous|cat|stack|fill_|zero_|(new_)?(zeros|ones|full|empty)"
        r"\w*|pad|constant_pad_nd|repeat\w*|pin_memory|is_pinned|local_scalar_dense|item|is_nonzero"
        r"|split_with_sizes_copy|chunk_cat|arange|scalar_tensor)$",
    ),
    (
        "reduction",
        r"::(sum|mean|max|min|amax|amin|argmax|argmin|std|var|prod|any|all|cumsum|logsumexp)$",
    ),
    (
        "view",
        r"(::|^)_?(view|view_as|unsafe_view|reshape|reshape_alias|transpose|permute|t|expand"
        r"|expand_as|slice|select|squeeze|unsqueeze|detach|alias|as_strided|flatten|unflatten|split"
        r"|split_with_sizes|chunk|unbind|narrow|numpy_T|resize|set|lift_fresh|resolve_\w+"
        r"|result_type|unfold)_?(_backward)?$",
    ),
    (
        "elementwise",
        r"::_{0,2}i?(add|sub|mul|div|pow|square|sqrt|rsqrt|exp|log|log1p|neg|abs|clamp|clamp_min"
        r"|clamp_max|relu|gelu|silu|sigmoid|tanh|threshold|lerp|addcmul|addcdiv|hardtanh|leaky_relu"
        r"|elu|erf|sin|cos|eq|ne|lt|gt|le|ge|maximum|minimum|logical_\w+|bitwise_\w+|and|or|xor"
        r"|reciprocal|sign|rsub|remainder|floor|ceil|round|isnan|isfinite|nan_to_num|tril|triu"
        r"|rotary_embedding)(_backward|_out|_){0,2}$",
    ),
)
"""Family and pattern of the operator's name."""


@lru_cache(maxsize=65536)
def operator_family(name: str) -> str:
    """The family of an operator, by its name."""
    return next((family for family, pattern in _COMPILED if pattern.search(name)), OTHER)


def operator_times(
    trace: Trace,
    launches: Launches,
    ranges: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
) -> pd.DataFrame | None:
    """One row an operator, most host time first; ``None`` without operators.

    Self time leaves out operators called on the same thread, so it sums to the time inside any.
    Compilation is no operator's work and left out.

    Args:
        trace: The event table.
        launches: The join of device work to its launching calls.
        ranges: Starts and ends of stretches in which operators begin; ``None`` for all.
    """
    import pandas as pd

    found = operator_calls(trace, launches)
    compiling = trace.name_codes(lambda name: range_cause(name) == "compilation")
    kept = inside(ranges, found.nesting.start) & ~np.isin(found.name, compiling)
    if not kept.any():
        return None
    calls = pd.DataFrame(
        {
            "code": found.name[kept],
            "calls": found.calls[kept],
            "host_self_ns": found.host_self[kept],
        }
    )
    table = calls.groupby("code").sum().reset_index()
    table["name"] = [trace.names[code] for code in table.pop("code").tolist()]
    table["family"] = [operator_family(name) for name in table["name"]]
    table = table[["name", "family", "calls", "host_self_ns"]]
    return table.sort_values(
        ["host_self_ns", "name"], ascending=[False, True], kind="stable", ignore_index=True
    )


def family_times(operators: pd.DataFrame) -> pd.DataFrame:
    """One row a family, most host time first; ``most_in`` is the operator with most of it."""
    families = operators.groupby("family", sort=True).agg(
        calls=("calls", "sum"), host_self_ns=("host_self_ns", "sum"), most_in=("name", "first")
    )
    whole = int(families["host_self_ns"].sum())
    families["share"] = families["host_self_ns"] / whole if whole else np.nan
    families = families.reset_index().sort_values(
        ["host_self_ns", "family"], ascending=[False, True], kind="stable", ignore_index=True
    )
    return families[list(OPERATOR_FAMILY_COLUMNS)]


_COMPILED = tuple((family, re.compile(pattern)) for family, pattern in OPERATOR_FAMILIES)
