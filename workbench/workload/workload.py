"""The user's model, data and step, as one record that checks itself once."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, Dataset

from workbench.errors import WorkloadError

DEFAULT_BATCH_SIZE = 32


@dataclass(frozen=True, eq=False)
class Workload:
    """A training loop, or an inference loop, that can be run step by step.

    A tuple or list batch means ``loss(model(*batch[:-1]), batch[-1])``. A mapping means
    ``model(**batch)``, with the output's ``loss`` when no loss is given and
    ``loss(output, batch)`` otherwise. Anything else needs ``step``. Without loss and optimizer the
    model only infers.

    Args:
        model: The module to train. With ``step`` it may be anything that the step understands.
        data: A ``Dataset`` (see ``batch_size``), a ``DataLoader``, a collection of batches that
            can be iterated again and again, or a function that gives one of these. A function may
            also give a generator: it is called once an epoch.
        loss: ``loss(output, target)``, a scalar.
        optimizer: One optimizer or several. ``None`` with a loss: forward and backward only.
        scheduler: One learning-rate scheduler or several, stepped after each optimizer step. A
            schedule that counts epochs is not for here: leave it out, or call it in ``step``.
        step: Your own ``step(model, batch)`` with its own backward and optimizer. When it also
            takes ``control``, a :class:`~workbench.workload.Control`, settings that need to reach
            inside the step work too.
        batch_size: Samples per batch when ``data`` holds single samples; 32 when left out.
        device: Where to run. ``None``: where the model is.
        name: What to call it in runs and reports; the model's class name when left out.

    Raises:
        WorkloadError: When the parts do not fit together; the message names the remedy.
    """

    model: Any
    data: Any
    loss: Callable[..., Any] | None = field(default=None, kw_only=True)
    optimizer: Optimizer | Sequence[Optimizer] | None = field(default=None, kw_only=True)
    scheduler: Any = field(default=None, kw_only=True)
    step: Callable[..., Any] | None = field(default=None, kw_only=True)
    batch_size: int | None = field(default=None, kw_only=True)
    device: str | int | torch.device | None = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_model(self)
        _check_parts(self)
        _check_optimizers(self)
        _check_schedulers(self)
        _check_data(self)
        _check_device(self)
        if self.name is not None and not isinstance(self.name, str):
            raise WorkloadError(f"name={self.name!r} must be text, or left out.")

    @property
    def optimizers(self) -> tuple[Optimizer, ...]:
        """The optimizers, however many were given."""
        if self.optimizer is None:
            return ()
        return (self.optimizer,) if isinstance(self.optimizer, Optimizer) else tuple(self.optimizer)

    @property
    def schedulers(self) -> tuple[Any, ...]:
        """The schedulers, however many were given."""
        if self.scheduler is None:
            return ()
        single = hasattr(self.scheduler, "step")
        return (self.scheduler,) if single else tuple(self.scheduler)

    @property
    def title(self) -> str:
        """The name given, or the model's class name."""
        return self.name or type(self.model).__name__

    @property
    def trains(self) -> bool:
        """Whether the default step goes backward; a step of one's own decides for itself."""
        return self.loss is not None or bool(self.optimizers)

    @property
    def takes_control(self) -> bool:
        """Whether the own step accepts a ``control`` argument."""
        return self.step is not None and "control" in _parameters(self.step)

    def __repr__(self) -> str:
        kind = "own step" if self.step else "training" if self.trains else "inference"
        return f"Workload({self.title}, {type(self.data).__name__}, {kind})"


def is_data_set(data: object, batch_size: int | None) -> bool:
    """Whether ``data`` holds single samples, which still have to be put into batches."""
    if isinstance(data, DataLoader) or _is_chain_of_loader(data):
        return False
    if isinstance(data, Dataset):
        return True
    return batch_size is not None and hasattr(data, "__getitem__") and hasattr(data, "__len__")


def _is_chain_of_loader(data: object) -> bool:
    """Whether ``data`` is WebDataset's loader: a data set by its class, but around a loader."""
    chained = getattr(data, "__dict__", {}).get("pipeline")
    return isinstance(chained, list | tuple) and any(isinstance(p, DataLoader) for p in chained)


def _check_model(work: Workload) -> None:
    model = work.model
    if work.step is None and not callable(model):
        raise WorkloadError(
            f"model is a {type(model).__name__}, which cannot be called: give a torch.nn.Module, "
            "or step=my_step with your own step(model, batch)."
        )
    if isinstance(model, type):
        raise WorkloadError(f"model is the class {model.__name__}: give an instance of it.")
    if isinstance(model, nn.Module) and any(
        nn.parameter.is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())
    ):
        raise WorkloadError(
            "the model has lazy parameters whose shapes are not known yet: "
            "call the model once on a batch before making the Workload."
        )
    if work.step is None and isinstance(model, nn.Module) and _is_empty(model):
        raise WorkloadError(
            "the model is on the meta device, where weights have shapes but no numbers: give it "
            "some with model.to_empty(device='cpu') and load its weights. For weights that hooks "
            "bring in while it runs, give step=my_step with your own step(model, batch)."
        )
    if work.trains and work.step is None and not isinstance(model, nn.Module):
        raise WorkloadError(
            f"model is a {type(model).__name__}; training needs a torch.nn.Module, "
            "or step=my_step with your own step(model, batch)."
        )


def _is_empty(model: nn.Module) -> bool:
    """Whether there is a weight and every one is on the meta device."""
    devices = {tensor.device.type for tensor in (*model.parameters(), *model.buffers())}
    return devices == {"meta"}


def _check_parts(work: Workload) -> None:
    if work.loss is not None and not callable(work.loss):
        raise WorkloadError(f"loss={work.loss!r} cannot be called; give loss(output, target).")
    if isinstance(work.loss, type):
        raise WorkloadError(f"loss is the class {work.loss.__name__}: give an instance of it.")
    if work.step is None:
        return
    if not callable(work.step):
        raise WorkloadError(f"step={work.step!r} cannot be called; give step(model, batch).")
    if work.loss is not None:
        raise WorkloadError(
            "loss and step are both given: a step of your own computes its loss itself. "
            "Leave loss out, or leave step out."
        )
    names = _parameters(work.step)
    positional = [n for n in names if n != "control"]
    if names and len(positional) < 2 and not any(n.startswith("*") for n in names):
        raise WorkloadError(
            f"step takes ({', '.join(names)}); it is called as step(model, batch), "
            "with control=... when it has such an argument."
        )


def _check_optimizers(work: Workload) -> None:
    given = work.optimizer
    if given is None:
        return
    if not isinstance(given, Optimizer | Sequence) or isinstance(given, str):
        raise WorkloadError(
            f"optimizer is a {type(given).__name__}; give a torch.optim.Optimizer made from "
            "model.parameters(), or a list of them."
        )
    for one in work.optimizers:
        if not isinstance(one, Optimizer):
            raise WorkloadError(
                f"optimizer holds a {type(one).__name__}; give torch.optim.Optimizer instances."
            )
    if work.step is not None or not isinstance(work.model, nn.Module):
        return
    own = {id(p) for p in work.model.parameters()}
    for one in work.optimizers:
        if own.isdisjoint(id(p) for group in one.param_groups for p in group["params"]):
            raise WorkloadError(
                f"the {type(one).__name__} updates none of the model's parameters (it was made for "
                "another copy of the model): make it from this model's parameters()."
            )


def _check_schedulers(work: Workload) -> None:
    if work.scheduler is None:
        return
    if not hasattr(work.scheduler, "step") and not isinstance(work.scheduler, Sequence):
        raise WorkloadError(
            f"scheduler is a {type(work.scheduler).__name__}; give a learning-rate scheduler."
        )
    if not work.optimizers and work.step is None:
        raise WorkloadError("scheduler is given without optimizer: give both, or neither.")
    for one in work.schedulers:
        if isinstance(one, torch.optim.lr_scheduler.ReduceLROnPlateau) and work.step is None:
            raise WorkloadError(
                "ReduceLROnPlateau needs a validation metric, which a step does not have: "
                "leave scheduler out, or call it in a step of your own."
            )


def _check_data(work: Workload) -> None:
    data = work.data
    if hasattr(type(data), "__next__"):
        raise WorkloadError(
            f"data is a {type(data).__name__}, an iterator that can be read only once: "
            "give a function that makes it, such as data=lambda: make_batches()."
        )
    if isinstance(data, type):
        raise WorkloadError(f"data is the class {data.__name__}: give an instance of it.")
    if isinstance(data, str | bytes | Mapping | torch.Tensor):
        raise WorkloadError(
            f"data is a {type(data).__name__}; give a Dataset, a DataLoader, a list of batches, or "
            "a function that gives one. A single batch goes into a list: data=[batch]."
        )
    if not (can_be_iterated(data) or callable(data)):
        raise WorkloadError(
            f"data is a {type(data).__name__}, which cannot be iterated: give a Dataset, a "
            "DataLoader, a list of batches, or a function that gives one."
        )
    size = work.batch_size
    if size is None:
        return
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise WorkloadError(f"batch_size={size!r} must be a whole number of at least 1.")
    if not is_data_set(data, size) and not is_factory(data):
        raise WorkloadError(
            f"batch_size={size} is given, but data ({type(data).__name__}) gives whole batches "
            "already: leave batch_size out, or use Settings(batch_size=...) to change it for a run."
        )


def can_be_iterated(data: object) -> bool:
    """Whether batches or samples can be taken from ``data``."""
    return isinstance(data, Dataset | Iterable) or hasattr(data, "__getitem__")


def is_factory(data: object) -> bool:
    """Whether ``data`` is a function that gives the data."""
    return (
        callable(data)
        and not isinstance(data, Dataset | Iterable)
        and not hasattr(data, "__getitem__")
    )


def _check_device(work: Workload) -> None:
    if work.device is None:
        return
    try:
        torch.device(work.device)
    except (RuntimeError, TypeError) as error:
        raise WorkloadError(
            f"device={work.device!r} is not a device; give for instance 'cpu' or 'cuda:0'."
        ) from error


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the parameters, ``*args`` and ``**kwargs`` with their stars; empty when unknown."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ()
    stars: dict[Any, str] = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    return tuple(stars.get(p.kind, "") + p.name for p in signature.parameters.values())
