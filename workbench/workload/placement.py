"""Where the model lies and in which memory order, and the same for batches."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.optim import Optimizer

from workbench.errors import SettingError, WorkloadError


def model_device(model: Any) -> torch.device:
    """The device of the first parameter or buffer that has numbers; else the CPU."""
    if isinstance(model, nn.Module):
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.device.type != "meta":
                return tensor.device
    return torch.device("cpu")


def check_device(wanted: str | int | torch.device, model: Any) -> torch.device:
    """The wanted device, after checking that it exists and that the model can go there.

    Raises:
        WorkloadError: When this machine has no such device.
    """
    device = torch.device(wanted)
    backend: Any = getattr(torch, device.type, None)
    there = device.type == "cpu" or (backend is not None and backend.is_available())
    count = getattr(backend, "device_count", lambda: 1)() if there else 0
    if device.type != "cpu" and (not there or (device.index or 0) >= count):
        raise WorkloadError(
            f"device={str(wanted)!r} is not available here ({_available()}): "
            "use one of these, or leave device out to run where the model is."
        )
    if isinstance(model, nn.Module):
        places = {str(p.device) for p in model.parameters()}
        if len(places) > 1:
            raise WorkloadError(
                f"the model lies on several devices ({', '.join(sorted(places))}): "
                "leave device out to run it as it is placed."
            )
    index: int | None = device.index
    if device.type == "cuda" and index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def start_device(device: torch.device) -> None:
    """Start a device before its random state is saved; one that runs already is left alone."""
    if device.type in {"cuda", "xpu"}:
        getattr(torch, device.type).init()


def move_modules(modules: Iterable[nn.Module], device: torch.device) -> None:
    """Move weights and buffers; the snapshot brings them back."""
    for module in modules:
        module.to(device)


def settle_optimizers(optimizers: Sequence[Optimizer]) -> None:
    """Bring the state of each optimizer to the device and memory order of its parameters."""
    for optimizer in optimizers:
        for parameter, state in optimizer.state.items():
            for key, value in state.items():
                if key == "step" or not isinstance(value, Tensor):
                    continue
                if value.shape != parameter.shape:
                    if value.dim() and value.device != parameter.device:
                        value.data = value.to(parameter.device)
                elif value.device != parameter.device or value.stride() != parameter.stride():
                    placed = torch.empty_like(parameter, dtype=value.dtype)
                    value.data = placed.copy_(value)


def set_memory_format(model: Any, channels_last: bool) -> None:
    """Put the 4-d weights into the wanted memory order.

    Raises:
        SettingError: When there are none, so that nothing would change.
    """
    weights = list(model.parameters()) if isinstance(model, nn.Module) else []
    if not any(weight.dim() == 4 for weight in weights):
        raise SettingError(
            f"channels_last={channels_last} cannot act: the model has no 4-d weights "
            "(2-d convolutions), so there is no channel order to change."
        )
    model.to(memory_format=torch.channels_last if channels_last else torch.contiguous_format)


def moved(batch: Any, change: Callable[[Tensor], Tensor], _inside: tuple[int, ...] = ()) -> Any:
    """``batch`` with ``change`` applied to every tensor in its lists, tuples and mappings.

    Objects with a ``to`` method of their own that are no tensors are left to the step. A list
    inside itself stays the list that it was.
    """
    if isinstance(batch, Tensor):
        return change(batch)
    if id(batch) in _inside or not isinstance(batch, Mapping | list | tuple):
        return batch
    inner = partial(moved, change=change, _inside=(*_inside, id(batch)))
    if isinstance(batch, Mapping):
        values = {key: inner(value) for key, value in batch.items()}
        return values if type(batch) is dict else _rebuilt(batch, values)
    if isinstance(batch, PackedSequence):  # whose batch_sizes stay on the host
        data, sizes, *order = batch
        return PackedSequence(inner(data), sizes, *map(inner, order))
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(inner, batch))
    return type(batch)(map(inner, batch))


def tensors_of(batch: Any) -> list[Tensor]:
    """The tensors in the lists, tuples and mappings of a batch, in order; each list once."""
    found: list[Tensor] = []
    waiting, met = [batch], set[int]()
    while waiting:
        part = waiting.pop()
        if isinstance(part, Tensor):
            found.append(part)
        elif isinstance(part, Mapping | list | tuple) and id(part) not in met:
            met.add(id(part))
            waiting += reversed(_parts(part))
    return found


def _parts(holder: Any) -> list[Any]:
    if not isinstance(holder, Mapping):
        return list(holder)
    try:
        return list(holder.values())
    except Exception:  # noqa: BLE001 - a mapping of the user's own
        return []


def samples_in(batch: Any) -> int | None:
    """Length of the first dimension of the first tensor that has one, else ``None``."""
    return next((length for t in tensors_of(batch) if (length := _length(t)) is not None), None)


def _length(tensor: Tensor) -> int | None:
    try:
        return int(tensor.size(0)) if tensor.dim() else None
    except Exception:  # noqa: BLE001 - tensors of the user's own class refuse what they like
        return None


def _rebuilt(batch: Any, values: dict[Any, Any]) -> Any:
    try:
        return type(batch)(values)
    except TypeError:
        return values


def _available() -> str:
    names = ["cpu"]
    for kind in ("cuda", "xpu", "mps"):
        backend: Any = getattr(torch, kind, None)
        if backend is not None and backend.is_available():
            names.append(f"{kind} × {getattr(backend, 'device_count', lambda: 1)()}")
    return "there is " + ", ".join(names)
