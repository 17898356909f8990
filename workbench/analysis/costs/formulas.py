"""The cost of any operator: a formula by its name, or the reason why there is none."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from workbench.analysis.costs.attention import ATTENTION, VARIABLE_LENGTH
from workbench.analysis.costs.convolution import CONVOLUTION
from workbench.analysis.costs.cost import (
    NESTED,
    NO_FORMULA,
    NO_SHAPES,
    QUANTIZED,
    SPARSE,
    UNKNOWN_SHAPE,
    VARYING,
    Call,
    Cost,
    UncountedError,
    call_of,
)
from workbench.analysis.costs.fused import FUSED, fused
from workbench.analysis.costs.matrix import MATRIX
from workbench.analysis.costs.movement import foreach, nothing
from workbench.analysis.costs.names import MOVEMENT

Formula = Callable[[Call], Cost]

FORMULAS: dict[str, Formula] = {**MOVEMENT, **MATRIX, **CONVOLUTION, **ATTENTION}
_REGISTERED: dict[str, Formula] = {}
_BY_KIND = (
    (QUANTIZED, re.compile(r"^quantized::|quantized|_int\dpack|_int_mm|fake_quant|^aten::q_")),
    (SPARSE, re.compile(r"sparse|^aten::(coalesce|_coalesce|hspmm|sspaddmm)")),
    (NESTED, re.compile(r"nested|jagged")),
)
ENGINE = re.compile(
    r"^(autograd::engine::|torch::autograd::|Optimizer\.|torch\.distributed\.ddp|DistributedDataParallel)"
    r"|^(?!aten::|\w+::)\w*Backward\d*$|^## Call CompiledFxGraph|^Torch-Compiled Region"
    r"|^CompiledFunction|^enumerate\(DataLoader\)"
)
"""Records around operators, which compute nothing themselves."""


def register_cost(operator: str, formula: Formula | None) -> None:
    """Tell the cost of an operator of your own, or of one that has no formula here.

    Args:
        operator: The name as profiles show it, such as ``mylib::scan``.
        formula: Takes the :class:`Call` (``call.dims(0)``, ``call.bytes_of(1)``,
            ``call.value(2)``) and returns a :class:`Cost`; ``None`` takes it back.
    """
    if formula is None:
        _REGISTERED.pop(operator, None)
    else:
        _REGISTERED[operator] = formula


def flops_of(
    operator: str, shapes: Any, dtypes: Any, extra: Mapping[str, Any] | None = None
) -> Cost | None:
    """What one call must compute and move; ``None`` where nobody can tell.

    Args:
        operator: The name as profiles show it: ``aten::mm``.
        shapes: Sizes by argument, as lists or as JSON: ``[[64,3],[3,8]]``; of what is no tensor
            ``[]``, of a list of tensors a list of sizes.
        dtypes: Types by argument as the profiler (``float``, ``c10::BFloat16``) or torch
            (``float32``) names them.
        extra: ``values`` by argument (strides, padding, flags), ``outputs`` (sizes of results),
            ``strides`` of the inputs, where known.
    """
    found = cost_or_reason(operator, shapes, dtypes, extra)
    return found if isinstance(found, Cost) else None


def cost_or_reason(
    operator: str, shapes: Any, dtypes: Any, extra: Mapping[str, Any] | None = None
) -> Cost | str:
    """The same, with the reason where there is no cost."""
    formula = formula_of(operator)
    if formula is nothing:
        return formula(call_of(operator, [], []))
    if formula is None:
        return _why(operator)
    call = call_of(operator, shapes, dtypes, extra)
    if not call.shapes:
        return NO_SHAPES
    try:
        return formula(call)
    except UncountedError as reason:
        return str(reason)
    except (IndexError, ValueError, TypeError, ZeroDivisionError):
        return UNKNOWN_SHAPE  # arguments of another version, or not what the name promises


def cost_of_noted(call: Mapping[str, Any]) -> Cost | str:
    """The cost of a call that a recorder saw: with its results, and whether it is pointwise.

    A pointwise operator without a formula reads each of its inputs and writes each result once.
    """
    found = cost_or_reason(call["name"], call["shapes"], call["types"], call)
    if found != NO_FORMULA or not call.get("pointwise"):
        return found
    given = call_of(call["name"], call["shapes"], call["types"], call)
    made = call_of(call["name"], call["outputs"], call.get("output_types"))
    try:
        return Cost(
            flops=0,
            bytes_read=sum(given.bytes_of(at) for at in given.tensors()),
            bytes_written=sum(made.bytes_of(at) for at in made.tensors()),
            kind="elementwise",
        )
    except UncountedError as reason:
        return str(reason)


def formula_of(operator: str) -> Formula | None:
    """The formula by name; fused kernels and lists of tensors by the pattern of their names."""
    found = _REGISTERED.get(operator) or FORMULAS.get(operator)
    if found is not None:
        return found
    if ENGINE.match(operator):
        return nothing
    if FUSED.match(operator):
        return fused
    return foreach if operator.startswith("aten::_foreach_") else None


def _why(operator: str) -> str:
    if operator in VARIABLE_LENGTH or "varlen" in operator:
        return VARYING
    return next((why for why, sign in _BY_KIND if sign.search(operator)), NO_FORMULA)
