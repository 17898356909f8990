"""Optimizers after the parameters of a model were exchanged for parts of them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim import Optimizer


def names_of(model: nn.Module) -> dict[int, str]:
    """The name of each parameter, by the identity that optimizers know it by."""
    return {id(parameter): name for name, parameter in model.named_parameters()}


def repoint(optimizers: Iterable[Optimizer], names: dict[int, str], model: nn.Module) -> list[str]:
    """Let each optimizer update what stands under the old names now, with its state.

    Parameters that this rank no longer holds leave the optimizer.

    Returns:
        What was decided for the user.
    """
    now, notes = dict(model.named_parameters()), list[str]()
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            pairs = [(old, now.get(names[id(old)])) for old in group["params"] if id(old) in names]
            others = [old for old in group["params"] if id(old) not in names]
            group["params"] = [*(new for _, new in pairs if new is not None), *others]
            for old, new in pairs:
                _move_state(optimizer, old, new)
            if (
                _mixed(group["params"])
                and (group.get("foreach") or group.get("fused")) is not False
            ):
                group.update({name: False for name in ("foreach", "fused") if name in group})
                notes.append(
                    f"{type(optimizer).__name__} goes over its parameters one by one: torch does "
                    "not take divided and whole ones together"
                )
    return list(dict.fromkeys(notes))


def _mixed(parameters: list[Any]) -> bool:
    return len({isinstance(parameter, DTensor) for parameter in parameters}) > 1


def _move_state(optimizer: Optimizer, old: Tensor, new: Tensor | None) -> None:
    if new is old or old not in optimizer.state:
        return
    state = optimizer.state.pop(old)
    if new is None:
        return
    optimizer.state[new] = {
        key: _like(value, old, new) if isinstance(value, Tensor) else value
        for key, value in state.items()
    }


def _like(value: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """A state of the whole parameter as that of its part."""
    if not isinstance(new, DTensor) or value.shape != old.shape:
        return value
    return distribute_tensor(value, new.device_mesh, new.placements)


class Where:
    """Which module's forward runs, to name the one that fails."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._stack: list[str] = []

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Inside, forward passes are followed."""
        handles = []
        for name, module in self._model.named_modules():
            handles.append(module.register_forward_pre_hook(self._enter(name)))
            handles.append(module.register_forward_hook(self._leave))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    @property
    def name(self) -> str:
        """The innermost module that was entered and not left."""
        return self._stack[-1] if self._stack and self._stack[-1] else "the model"

    def _enter(self, name: str) -> Callable[..., None]:
        def enter(*_: Any) -> None:
            self._stack.append(name)

        return enter

    def _leave(self, *_: Any) -> None:
        self._stack.pop()
