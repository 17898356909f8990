"""Keep a whole training loop in one low-precision dtype: weights, buffers, optimizer state."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

Place = tuple[Any, ...]


def cast_training(
    modules: Iterable[nn.Module], optimizers: Sequence[Optimizer], dtype: torch.dtype
) -> None:
    """Give every floating-point number of modules and optimizer state this dtype.

    Tensors stay the same objects, and two that shared their memory share it again. The snapshot
    brings back the exact numbers, or the new ones in their old dtype where training is kept.
    """
    done: dict[Place, Tensor] = {}
    for tensor in _of_modules(modules):
        gradient = tensor.grad if tensor.is_leaf else None
        _cast(tensor, dtype, done)
        if gradient is not None:
            # Another tensor: the one of before must have its dtype when it is put back.
            tensor.grad = gradient.to(tensor.dtype)
    for optimizer in optimizers:
        for state in optimizer.state.values():
            for value in _numbers(state):
                _cast(value, dtype, done)


def match_parameters(modules: Iterable[nn.Module], optimizers: Sequence[Optimizer]) -> None:
    """Give gradients and optimizer state that a run has made the dtype and device of their weight.

    For a run whose training is kept: the weights are back in their own dtype by then.
    """
    for tensor in _of_modules(modules):
        if tensor.is_leaf and tensor.grad is not None:
            gradient, tensor.grad = tensor.grad, None
            tensor.grad = gradient.to(tensor.device, tensor.dtype)
    for optimizer in optimizers:
        for parameter, state in optimizer.state.items():
            for value in _numbers(state):
                if value.is_floating_point():
                    value.data = value.to(parameter.device, parameter.dtype)


def _numbers(state: dict[Any, Any]) -> Iterator[Tensor]:
    """The tensors in the state of a parameter, also those in lists, as LBFGS keeps them."""
    for name, value in state.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Tensor) and name != "step":
                yield one


def _of_modules(modules: Iterable[nn.Module]) -> Iterator[Tensor]:
    met: set[int] = set()
    for module in modules:
        for tensor in (*module.parameters(), *module.buffers()):
            if id(tensor) not in met:
                met.add(id(tensor))
                yield tensor


def _cast(tensor: Tensor, dtype: torch.dtype, done: dict[Place, Tensor]) -> None:
    if not tensor.is_floating_point() or tensor.dtype == dtype or tensor.layout != torch.strided:
        return
    alias = tensor.detach()
    place = (alias.device, alias.data_ptr(), alias.shape, alias.stride())
    if alias.numel() == 0 or place not in done:
        done[place] = alias.to(dtype)
    tensor.data = done[place]
