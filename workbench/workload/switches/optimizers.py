"""How optimizers go over their parameters: many tensors per kernel, one kernel, or one by one."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from workbench.errors import SettingError
from workbench.settings import OptimizerLoop

_FLAGS = ("foreach", "fused")
_ATTRIBUTES = ("_step_supports_amp_scaling", "_need_device_dtype_check_for_fused")


def set_loop(optimizers: Sequence[Optimizer], loop: OptimizerLoop, undo: ExitStack) -> None:
    """Let ``optimizers`` go over their parameters in this way.

    Raises:
        SettingError: When there is none, or one of them has no such loop.
    """
    if not optimizers:
        raise SettingError(
            f"optimizer={loop!r} cannot act: the workload names no optimizer. Give it as "
            "optimizer=... beside a step of your own, too."
        )
    for optimizer in optimizers:
        why = why_not(optimizer, loop)
        if why is not None:
            raise SettingError(f"optimizer={loop!r} cannot act on {_name(optimizer)}: {why}.")
    for optimizer in optimizers:
        _set(optimizer, loop, undo)


def has_loops(optimizer: Optimizer) -> bool:
    """Whether an optimizer is one of torch's that can choose among these ways."""
    step = type(optimizer).step
    return getattr(step, "__module__", "").startswith("torch.optim") and all(
        "foreach" in group for group in optimizer.param_groups
    )


def why_not(optimizer: Optimizer, loop: OptimizerLoop) -> str | None:
    """Why an optimizer has no such loop; ``None`` if it has."""
    if not has_loops(optimizer):
        return "its step is its own, and has no foreach, fused or single form"
    if loop == "single":
        return None
    if any(group.get("differentiable") for group in optimizer.param_groups):
        return "it is differentiable, which only the single form can be"
    return _no_foreach(optimizer) if loop == "foreach" else _no_fused(optimizer)


def _no_foreach(optimizer: Optimizer) -> str | None:
    groups = optimizer.param_groups
    if any(isinstance(g.get("lr"), Tensor) and not g.get("capturable") for g in groups):
        return "its learning rate is a tensor, which foreach does not take"
    return None


def _no_fused(optimizer: Optimizer) -> str | None:
    if not all("fused" in group for group in optimizer.param_groups):
        return "torch has no fused form of it"
    tensors = [p for group in optimizer.param_groups for p in group["params"]]
    if not all(p.is_floating_point() for p in tensors):
        return "a parameter is complex, which the fused form does not take"
    known = {"cpu"} if _name(optimizer) == "Adagrad" else {"cpu", "cuda", "xpu", "mps"}
    unknown = {p.device.type for p in tensors} - known
    return f"torch has no fused form of it on {', '.join(sorted(unknown))}" if unknown else None


def _set(optimizer: Optimizer, loop: OptimizerLoop, undo: ExitStack) -> None:
    undo.callback(place_steps, optimizer)
    fused = loop == "fused"
    for group in (optimizer.defaults, *optimizer.param_groups):
        for name in _FLAGS:
            if name in group:
                undo.callback(partial(group.__setitem__, name, group[name]))
                group[name] = loop == name
    for name in _ATTRIBUTES:
        undo.callback(_attribute(optimizer, name))
        if fused:
            optimizer.__dict__[name] = True
        else:
            optimizer.__dict__.pop(name, None)
    place_steps(optimizer)


def _attribute(owner: Any, name: str) -> Callable[[], Any]:
    """How to give an attribute the value, or the absence, of now."""
    attributes: dict[str, Any] = owner.__dict__
    if name in attributes:
        return partial(attributes.__setitem__, name, attributes[name])
    return partial(attributes.pop, name, None)


def place_steps(optimizer: Optimizer) -> None:
    """Bring counts of steps to where the loop reads them: a fused one beside the parameters."""
    if not has_loops(optimizer):
        return
    for group in optimizer.param_groups:
        beside = bool(group.get("fused") or group.get("capturable"))
        for parameter in group["params"]:
            step = optimizer.state.get(parameter, {}).get("step")
            if not isinstance(step, Tensor):
                continue
            device = parameter.device if beside else torch.device("cpu")
            dtype = torch.float32 if group.get("fused") else step.dtype
            if step.device != device or step.dtype != dtype:
                step.data = step.to(device, dtype)


def _name(optimizer: Optimizer) -> str:
    return type(optimizer).__name__
