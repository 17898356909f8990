"""What a training is made of, carried from ranks back into the process that they took over from."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from workbench.workload.workload import Workload

_NOT_CARRIED = ("params", "foreach", "fused")
"""Of the options of a group: its parameters, and how ranks had to loop over them."""


@dataclass(frozen=True, kw_only=True)
class Carried:
    """Weights, optimizers, schedulers and the place in the data, as plain values on the CPU."""

    model: dict[str, Tensor]
    """Parameters and buffers by name."""
    loss: dict[str, Tensor]
    optimizers: tuple[dict[str, Any], ...]
    """``state`` by the name of the parameter, and the options of each group."""
    schedulers: tuple[dict[str, Any], ...]
    place: dict[str, Any]
    """Of the data, as ``following`` makes it."""


def collect(
    work: Workload, held: nn.Module | None, place: dict[str, Any], *, whole: bool
) -> Carried:
    """What this rank holds; parts of one weight are put together, which all ranks do at once.

    Args:
        work: Of the rank.
        held: The stage that this rank holds; ``None``: the whole model, or a part of every weight.
        place: Of the data.
        whole: Whether this rank's values are wanted; others only take part.
    """
    model = held if held is not None else work.model
    names = {id(p): name for name, p in model.named_parameters()}
    with torch.no_grad():
        weights = {name: _whole(t) for name, t in _tensors(model)}
        optimizers = tuple(_optimizer(each, names) for each in work.optimizers)
        loss = {name: _whole(t) for name, t in _tensors(work.loss)}
    if not whole:
        return Carried(model={}, loss={}, optimizers=(), schedulers=(), place={})
    return Carried(
        model=weights,
        loss=loss,
        optimizers=optimizers,
        schedulers=tuple(each.state_dict() for each in work.schedulers),
        place=place,
    )


def merged(parts: Iterable[Carried]) -> Carried:
    """The stages of several ranks as one model."""
    first, *others = parts
    for other in others:
        if not other.optimizers:
            continue
        optimizers = tuple(
            {**mine, "state": mine["state"] | theirs["state"]}
            for mine, theirs in zip(first.optimizers, other.optimizers, strict=True)
        )
        first = replace(first, model=first.model | other.model, optimizers=optimizers)
    return first


def put(work: Workload, carried: Carried) -> None:
    """Write it into the very tensors and objects of this process."""
    with torch.no_grad():
        for owner, values in ((work.model, carried.model), (work.loss, carried.loss)):
            for name, tensor in _tensors(owner):
                if name in values:
                    tensor.copy_(values[name])
    names = {id(p): name for name, p in work.model.named_parameters()}
    for optimizer, given in zip(work.optimizers, carried.optimizers, strict=True):
        known = dict(_parameters(optimizer, names))
        for name, state in given["state"].items():
            if name in known:
                optimizer.state[known[name]] = {k: _like(v, known[name]) for k, v in state.items()}
        for group, options in zip(optimizer.param_groups, given["groups"], strict=True):
            group.update(options)
    for scheduler, state in zip(work.schedulers, carried.schedulers, strict=True):
        scheduler.load_state_dict(state)


def _optimizer(optimizer: Optimizer, names: dict[int, str]) -> dict[str, Any]:
    known = {id(parameter): name for name, parameter in _parameters(optimizer, names)}
    return {
        "state": {
            known[id(p)]: {k: _whole(v) if isinstance(v, Tensor) else v for k, v in state.items()}
            for p, state in optimizer.state.items()
            if id(p) in known
        },
        "groups": [
            {k: v for k, v in group.items() if k not in _NOT_CARRIED}
            for group in optimizer.param_groups
        ],
    }


def _parameters(optimizer: Optimizer, names: dict[int, str]) -> Iterator[tuple[str, Tensor]]:
    """Each parameter with the model's name for it, or its place among those of others."""
    for number, group in enumerate(optimizer.param_groups):
        others: Sequence[Tensor] = [p for p in group["params"] if id(p) not in names]
        yield from ((names[id(p)], p) for p in group["params"] if id(p) in names)
        yield from ((f"{number}/{place}", p) for place, p in enumerate(others))


def _tensors(module: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(module, nn.Module):
        yield from module.named_parameters()
        yield from module.named_buffers()


def _whole(tensor: Tensor) -> Tensor:
    """All of a tensor on the CPU, in memory of its own."""
    given: Any = tensor
    full: Tensor = given.full_tensor() if hasattr(given, "full_tensor") else given
    return full.detach().to("cpu", copy=True)


def _like(value: Any, parameter: Tensor) -> Any:
    same = isinstance(value, Tensor) and value.shape == parameter.shape
    return value.to(parameter.device) if same else value
