"""Works a card out: one step on the meta device, where operators have shapes and no numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkloadError
from workbench.workload.card.batch import first_batch
from workbench.workload.card.card import ModelCard
from workbench.workload.card.counting import Counter
from workbench.workload.card.meta import meta_model, meta_value, tensors_in
from workbench.workload.card.optimizer import optimizer_bytes

if TYPE_CHECKING:
    from torch import Tensor, nn

    from workbench.workload.workload import Workload

_FEW = "operators without a known count of FLOPs (left out): "


def model_card(work_or_model: Workload | nn.Module, batch: Any = None) -> ModelCard:
    """What a model holds and what a sample costs, without running it.

    A copy on the meta device makes one step; the model, its optimizer and its data stay as they
    are. A Workload's step function is not called: its model and loss are.

    Args:
        work_or_model: A Workload, or a module.
        batch: As the model takes it; of a Workload the first one of its data when left out.

    Raises:
        WorkloadError: The model does not work on the meta device, or cannot be copied; the message
            says where.
    """
    from torch import nn

    from workbench.workload.workload import Workload

    if isinstance(work_or_model, Workload):
        model, loss, optimizers = work_or_model.model, work_or_model.loss, work_or_model.optimizers
        batch = first_batch(work_or_model) if batch is None else batch
    elif isinstance(work_or_model, nn.Module):
        model, loss, optimizers = work_or_model, None, ()
    else:
        raise WorkloadError(
            f"model_card takes a Workload or a torch module, not {type(work_or_model).__name__}."
        )
    if batch is None:
        raise WorkloadError("model_card(model, batch): a module alone tells no shape of its input.")
    copied, twins = meta_model(model)
    counter = Counter(copied)
    example = meta_value(batch)
    counter.own(tensors_in(example))
    _step(copied, loss, example, counter)
    samples = _samples(batch)
    notes = [] if not counter.unknown else [_FEW + ", ".join(sorted(counter.unknown)[:6])]
    state, note = optimizer_bytes(optimizers, twins)
    if note:
        notes.append(note)
    backward = counter.flops("", backward=True) / samples if counter.trained else None
    return ModelCard(
        name=type(model).__name__,
        samples=samples,
        parameters=sum(each.numel() for each in model.parameters()),
        parameter_bytes=_by_type(list(model.parameters())),
        buffer_bytes=sum(_size(each) for each in model.buffers()),
        gradient_bytes=_by_type([each for each in model.parameters() if each.requires_grad]),
        activation_bytes=counter.activations(""),
        optimizer_bytes=state,
        data_bytes_per_sample=sum(map(_size, tensors_in(batch))) / samples,
        forward_flops_per_sample=counter.flops("", backward=False) / samples,
        backward_flops_per_sample=backward,
        moved_bytes_per_sample=counter.moved / samples,
        modules=tuple(_rows(model, counter, samples)),
        notes=tuple(notes),
    )


def _step(model: nn.Module, loss: Any, batch: Any, counter: Counter) -> None:
    import torch

    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad(), counter:
            found = _forward(model, loss, batch)
            if isinstance(found, torch.Tensor) and found.requires_grad:
                counter.backward(found)
    except Exception as error:
        where = counter.here or type(model).__name__
        raise WorkloadError(
            f"no card of {type(model).__name__}: it does not work on the meta device, where "
            f"tensors have no numbers. In {where}: {type(error).__name__}: {error}"
        ) from error


def _forward(model: nn.Module, loss: Any, batch: Any) -> Any:
    """The loss as a Workload computes it; without one the sum of what comes out."""
    if isinstance(batch, Mapping):
        out = model(**batch)
        if loss is None:
            known = getattr(out, "loss", None)
            return _sum(out) if known is None else known
        return loss(out, batch)
    if isinstance(batch, list | tuple):
        if loss is not None and len(batch) > 1:
            return loss(model(*batch[:-1]), batch[-1])
        return _sum(model(*batch))
    return _sum(model(batch))


def _sum(out: Any) -> Any:
    values = out.values() if isinstance(out, Mapping) else out
    parts = [each.sum() for each in tensors_in(_plain(values)) if each.is_floating_point()]
    return sum(parts[1:], parts[0]) if parts else None


def _plain(values: Any) -> Any:
    return values if hasattr(values, "shape") else list(values)


def _samples(batch: Any) -> int:
    first = next((each for each in tensors_in(batch) if each.dim()), None)
    return max(1, int(first.shape[0])) if first is not None else 1


def _size(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _by_type(tensors: list[Any]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for each in tensors:
        name = str(each.dtype).removeprefix("torch.")
        sizes[name] = sizes.get(name, 0) + _size(each)
    return sizes


def _rows(model: nn.Module, counter: Counter, samples: int) -> list[tuple[Any, ...]]:
    rows = []
    for name, module in model.named_modules():
        parameters = list(module.parameters())
        backward = counter.flops(name, backward=True) / samples if counter.trained else math.nan
        rows.append(
            (
                name or type(model).__name__,
                sum(each.numel() for each in parameters),
                sum(map(_size, parameters)),
                counter.activations(name),
                counter.flops(name, backward=False) / samples,
                backward,
            )
        )
    return rows
