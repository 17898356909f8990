"""Linear layers in fp8: the three products of forward and backward, each tensor with its scale."""

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from workbench.errors import SettingError
from workbench.workload.switches.forwards import Forward, put_forward
from workbench.workload.workload import Workload

_MULTIPLE = 16
"""What ``torch._scaled_mm`` wants the sizes of its matrices to be multiples of."""
_FORWARD, _BACKWARD = torch.float8_e4m3fn, torch.float8_e5m2
"""More digits for weights and activations, more range for gradients (arXiv:2209.05433)."""


def set_fp8(work: Workload, undo: ExitStack) -> str:
    """Let the linear layers of the model multiply in fp8; weights keep their dtype.

    Returns:
        How many layers do, for people.

    Raises:
        SettingError: When no layer can.
    """
    model = work.model
    why = f"the model is a {type(model).__name__}, not a module"
    if isinstance(model, nn.Module) and not isinstance(model, nn.DataParallel):
        layers = [module for module in model.modules() if type(module) is nn.Linear]
        fitting = [layer for layer in layers if _fits(layer)]
        for layer in fitting:
            put_forward(work, layer, _in_fp8, undo)
        if fitting:
            return f"{len(fitting)} of {len(layers)} linear layers multiply in fp8"
        why = f"none of its {len(layers)} linear layers has sizes that are multiples of {_MULTIPLE}"
    raise SettingError(f"precision='fp8' cannot act: {why}. Use 'bf16'.")


def _fits(layer: nn.Linear) -> bool:
    return layer.in_features % _MULTIPLE == 0 and layer.out_features % _MULTIPLE == 0


def _in_fp8(layer: Any, forward: Forward) -> Forward:
    def in_fp8(input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        kind = input.device.type
        low = torch.is_autocast_enabled(kind)
        dtype = torch.get_autocast_dtype(kind) if low else input.dtype
        rows = input.reshape(-1, layer.in_features)
        product: Tensor = _Product.apply(rows, layer.weight, dtype)  # type: ignore[no-untyped-call]
        if layer.bias is not None:
            product = product + layer.bias.to(dtype)
        return product.view(*input.shape[:-1], layer.out_features)

    return in_fp8


class _Product(torch.autograd.Function):
    """``rows @ weight.T``, and its gradients."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
        rows8, rows_scale = _cast(rows, _FORWARD)
        weight8, weight_scale = _cast(weight, _FORWARD)
        ctx.save_for_backward(rows8, rows_scale, weight8, weight_scale)
        ctx.dtypes = rows.dtype, weight.dtype
        return _multiply(rows8, weight8.t(), rows_scale, weight_scale, dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        rows8, rows_scale, weight8, weight_scale = ctx.saved_tensors
        of_rows, of_weight = ctx.dtypes
        grad8, scale = _cast(gradients[0], _BACKWARD)
        left = right = None
        if ctx.needs_input_grad[0]:
            left = _multiply(grad8, _by_columns(weight8), scale, weight_scale, of_rows)
        if ctx.needs_input_grad[1]:
            # Rows of zeros add nothing, and make their number a multiple.
            rows = (0, 0, 0, -len(grad8) % _MULTIPLE)
            grads = functional.pad(grad8.view(torch.uint8), rows).view(_BACKWARD).t().contiguous()
            inputs = functional.pad(rows8.view(torch.uint8), rows).view(_FORWARD)
            right = _multiply(grads, _by_columns(inputs), scale, rows_scale, of_weight)
        return left, right, None


def _cast(values: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """``values`` in fp8 by rows, and what to multiply by to get them back."""
    largest = values.detach().abs().amax().float().clamp(min=1e-12)
    scale = torch.finfo(dtype).max / largest
    return (values.detach().float() * scale).to(dtype).contiguous(), scale.reciprocal()


def _by_columns(matrix: Tensor) -> Tensor:
    """The same matrix with its columns together in memory."""
    return matrix.t().contiguous().t()


def _multiply(
    left: Tensor, right: Tensor, left_scale: Tensor, right_scale: Tensor, dtype: torch.dtype
) -> Tensor:
    product: Tensor = torch._scaled_mm(
        left, right, scale_a=left_scale, scale_b=right_scale, out_dtype=dtype
    )
    return product
