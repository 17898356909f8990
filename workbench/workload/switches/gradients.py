"""Limit the norm of gradients, once per optimizer step, over what was scaled back."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.amp.grad_scaler import GradScaler
from torch.optim import Optimizer

from workbench.errors import SettingError


def clip(optimizers: Iterable[Optimizer], limit: float) -> None:
    """Scale the gradients of all optimizers together down to a norm of at most ``limit``.

    Raises:
        SettingError: For gradients without a norm, such as sparse ones.
    """
    with_gradient: dict[int, Tensor] = {
        id(parameter): parameter
        for optimizer in optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None
    }
    try:
        torch.nn.utils.clip_grad_norm_(with_gradient.values(), limit)
    except NotImplementedError as error:
        raise SettingError(
            f"clip_norm={limit:g} cannot act: a gradient is of a kind that torch takes no norm of "
            "(sparse, for instance). Leave clip_norm out, or make the gradients dense."
        ) from error


def step_scaled(scaler: GradScaler, optimizer: Optimizer) -> bool | None:
    """Step ``optimizer`` unless its scaled gradients overflowed.

    Returns:
        Whether it stepped; ``None`` where a fused step decides that on the device.
    """
    taken: list[int] = []

    def count(*_: Any) -> None:
        taken.append(1)

    handle = optimizer.register_step_post_hook(count)
    try:
        scaler.step(optimizer)
    finally:
        handle.remove()
    if getattr(optimizer, "_step_supports_amp_scaling", False):
        return None
    return bool(taken)
