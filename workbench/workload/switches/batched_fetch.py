"""Ask a data set for a whole batch at once, or sample by sample, where both give the same."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset, default_collate

from workbench.errors import SettingError


def set_batched_fetch(
    loader: DataLoader[Any], state: dict[str, Any], wanted: bool, undo: ExitStack
) -> None:
    """Change how the copy of ``loader`` with these attributes asks for its samples.

    Raises:
        SettingError: When the data set cannot be asked that way, or a batch might differ.
    """
    dataset: Any = loader.dataset
    if isinstance(dataset, IterableDataset) or loader.batch_sampler is None:
        whole = "it is iterated" if isinstance(dataset, IterableDataset) else "batch_size is None"
        raise SettingError(_cannot(loader, wanted, f"no index is asked for, because {whole}"))
    if has_batched_fetch(dataset) == wanted:
        return
    if not wanted:
        _set(_asked(dataset), None, loader, undo)
        return
    if loader.collate_fn is not default_collate:
        raise SettingError(
            _cannot(
                loader,
                wanted,
                "it has no __getitems__, and with a collate function of your own nobody could "
                "tell that a batch stays the same. Give the data set a __getitems__(indices)",
            )
        )
    if type(dataset) in (Tensor, np.ndarray) and dataset.ndim > 1:
        state["dataset"] = Rows(dataset)
    else:
        _give_rows(loader, undo)
    state["collate_fn"] = as_it_is


def has_batched_fetch(dataset: Any) -> bool:
    """Whether a loader would ask ``dataset`` for a whole batch at once."""
    return callable(getattr(_asked(dataset), "__getitems__", None))


def gives_batches(loader: DataLoader[Any]) -> bool:
    """Whether its data set gives whole batches, or can be made to without a difference."""
    dataset: Any = loader.dataset
    if isinstance(dataset, IterableDataset) or loader.batch_sampler is None:
        return False
    if has_batched_fetch(dataset):
        return True
    rows = type(dataset) in (Tensor, np.ndarray) and dataset.ndim > 1
    return loader.collate_fn is default_collate and (rows or _is_table(_asked(dataset)))


class Rows:
    """The rows of a tensor or array, as single samples and as whole batches."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __getitems__(self, indices: Sequence[int]) -> Tensor:
        return _rows(self.values, indices)


def rows_of(dataset: TensorDataset, indices: Sequence[int]) -> list[Tensor]:
    """A batch of a ``TensorDataset``, as the default collate function would put it together."""
    return [_rows(tensor, indices) for tensor in dataset.tensors]


def as_it_is(batch: Any) -> Any:
    """The collate function for what is a batch already."""
    return batch


def _rows(values: Any, indices: Sequence[int]) -> Tensor:
    chosen = values[torch.as_tensor(indices) if isinstance(values, Tensor) else list(indices)]
    return chosen if isinstance(chosen, Tensor) else torch.as_tensor(chosen)


def _asked(dataset: Any) -> Any:
    """What answers: a ``Subset`` has the method in any case, and passes on what it is asked."""
    while isinstance(dataset, Subset) and type(dataset).__getitems__ is Subset.__getitems__:
        dataset = dataset.dataset
    return dataset


def _is_table(dataset: Any) -> bool:
    return type(dataset) is TensorDataset and all(
        tensor.layout is torch.strided for tensor in dataset.tensors
    )


def _give_rows(loader: DataLoader[Any], undo: ExitStack) -> None:
    dataset = _asked(loader.dataset)
    if not _is_table(dataset):
        why = f"{type(dataset).__name__} has no __getitems__(indices) that gives a list of samples"
        raise SettingError(_cannot(loader, True, f"{why}: give it one"))
    _set(dataset, partial(rows_of, dataset), loader, undo)


def _set(dataset: Any, method: Any, loader: DataLoader[Any], undo: ExitStack) -> None:
    """Bind ``__getitems__`` on the object itself, where workers and samplers see it too."""
    attributes = getattr(dataset, "__dict__", None)
    if type(attributes) is not dict:
        why = f"{type(dataset).__name__} takes no attribute"
        raise SettingError(_cannot(loader, method is not None, why))
    if "__getitems__" in attributes:
        undo.callback(partial(attributes.__setitem__, "__getitems__", attributes["__getitems__"]))
    else:
        undo.callback(partial(attributes.pop, "__getitems__", None))
    attributes["__getitems__"] = method


def _cannot(loader: DataLoader[Any], wanted: bool, why: str) -> str:
    return f"batched_fetch={wanted} cannot act on {type(loader.dataset).__name__}: {why}."
