"""Copies on the meta device: shapes and types without numbers, nothing of the user's."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkloadError

if TYPE_CHECKING:
    from torch import Tensor, nn

_HOOKS = (*("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"),)


def meta_model(model: nn.Module) -> tuple[nn.Module, dict[int, Any]]:
    """A copy of the model on the meta device, and by the id of each tensor its twin.

    Raises:
        WorkloadError: The model cannot be copied.
    """
    memo: dict[int, Any] = {}
    for module in model.modules():
        for tensor in _tensors(module):
            memo.setdefault(id(tensor), _twin(tensor))
    twins = dict(memo)
    try:
        copied = copy.deepcopy(model, memo)
    except Exception as error:
        raise WorkloadError(
            f"no card of {type(model).__name__}: it cannot be copied ({type(error).__name__}: "
            f"{error})."
        ) from error
    for module in copied.modules():
        for name in _HOOKS:
            hooks = getattr(module, name)
            for key in [key for key, hook in hooks.items() if not _of_torch(hook)]:
                del hooks[key]
    return copied, twins


def meta_value(value: Any) -> Any:
    """A batch on the meta device; what is no tensor stays as it is."""
    import torch

    if isinstance(value, torch.Tensor):
        return _twin(value)
    if isinstance(value, dict):
        return {key: meta_value(each) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(meta_value, value))
    if isinstance(value, list | tuple):
        return type(value)(map(meta_value, value))
    return value


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Every tensor of nested lists, tuples and dictionaries."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors_in(each)


def _tensors(module: nn.Module) -> Iterator[Tensor]:
    yield from module.parameters(recurse=False)
    yield from module.buffers(recurse=False)
    for name, value in vars(module).items():
        if not name.startswith("_"):
            yield from tensors_in(value)


def _twin(tensor: Tensor) -> Tensor:
    import torch

    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made


def _of_torch(hook: Any) -> bool:
    """Hooks of torch's own (weight norm) are part of the model; others may have other effects."""
    return str(getattr(hook, "__module__", "")).startswith("torch.")
