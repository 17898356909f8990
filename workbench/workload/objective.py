"""What a batch means: how the model is called with it, and which number is the loss."""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from workbench.errors import SettingError, WorkloadError
from workbench.workload.placement import moved, samples_in, tensors_of

_STEP = "give step=my_step with your own step(model, batch)"


def infer(model: Callable[..., Any], batch: Any) -> Any:
    """The model's output, without the target that a labelled batch carries last.

    A tuple or list goes in without its last member, or whole when the model's ``forward`` takes
    that many arguments.
    """
    if isinstance(batch, Mapping):
        return model(**batch)
    if isinstance(batch, tuple | list):
        return model(*_inputs(model, batch))
    return model(batch)


def objective(model: Callable[..., Any], batch: Any, loss: Callable[..., Any] | None) -> Tensor:
    """The loss of one batch.

    Raises:
        WorkloadError: When the batch is of no known kind, or the loss is no scalar.
    """
    if isinstance(batch, Mapping):
        output = model(**batch)
        return _scalar(_own_loss(output) if loss is None else loss(output, batch), loss)
    if not isinstance(batch, tuple | list):
        raise WorkloadError(
            f"a batch is a {type(batch).__name__}; (input, ..., target) or a dictionary is "
            f"understood. For anything else {_STEP}."
        )
    if loss is None:
        raise WorkloadError(
            "an optimizer is given, but no loss: give loss=..., for instance "
            f"torch.nn.functional.cross_entropy, or {_STEP}."
        )
    if len(batch) < 2:
        raise WorkloadError(
            f"a batch has {len(batch)} member, but a loss needs input and target: {_STEP}."
        )
    return _scalar(loss(model(*batch[:-1]), batch[-1]), loss)


def split(batch: Any, parts: int) -> Iterator[tuple[Any, float]]:
    """Cut a batch into micro-batches along the first dimension, each with its share of samples.

    Raises:
        SettingError: When the tensors of the batch do not share their first dimension.
    """
    size = samples_in(batch)
    if size is None or any(t.dim() and t.shape[0] != size for t in tensors_of(batch)):
        raise SettingError(
            f"accumulation={parts} cannot act: the tensors of a batch have no common first "
            "dimension along which it could be cut into micro-batches."
        )
    bounds = [size * part // parts for part in range(parts + 1)]
    for low, high in itertools.pairwise(bounds):
        if high > low:
            yield _slice(batch, low, high), (high - low) / size


def _slice(batch: Any, low: int, high: int) -> Any:
    def cut(tensor: Tensor) -> Tensor:
        return tensor[low:high] if tensor.dim() else tensor

    return moved(batch, cut)


def _inputs(model: Callable[..., Any], batch: tuple[Any, ...] | list[Any]) -> Any:
    if len(batch) == 1:
        return batch
    forward = getattr(model, "_orig_mod", model)
    forward = forward.forward if isinstance(forward, nn.Module) else forward
    return batch if not _takes(forward, batch[:-1]) and _takes(forward, batch) else batch[:-1]


def _takes(function: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _own_loss(output: Any) -> Any:
    found = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if found is None:
        raise WorkloadError(
            f"the model's output ({type(output).__name__}) has no loss: put the labels into the "
            f"batch if the model computes it from them, give loss=loss(output, batch), or {_STEP}."
        )
    return found


def _scalar(value: Any, loss: Callable[..., Any] | None) -> Tensor:
    name = "the model's loss" if loss is None else f"loss {_name(loss)}"
    if not isinstance(value, Tensor):
        raise WorkloadError(f"{name} is a {type(value).__name__}; it must be a scalar tensor.")
    if value.numel() != 1:
        raise WorkloadError(
            f"{name} has shape {tuple(value.shape)}; it must be one number: "
            "reduce it, for instance with reduction='mean'."
        )
    if torch.is_grad_enabled() and not value.requires_grad:
        raise WorkloadError(
            f"{name} does not depend on any parameter that needs a gradient: unfreeze a parameter, "
            "do not detach the output, or leave loss and optimizer out for inference."
        )
    return value


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
