"""A private copy of the user's loader with settings applied; the user's stays as it is."""

import multiprocessing
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, IterDataPipe

from workbench.errors import SettingError, WorkloadError
from workbench.settings import Settings

LOADER_SETTINGS = (
    "batch_size",
    "workers",
    "prefetch_factor",
    "pin_memory",
    "persistent_workers",
)


def is_plain(loader: DataLoader[Any]) -> bool:
    """Whether the class of ``loader`` iterates as ``DataLoader`` does, so a copy acts alike."""
    kind = type(loader)
    return kind.__iter__ is DataLoader.__iter__ and kind._get_iterator is DataLoader._get_iterator


def loader_for(dataset: Any, batch_size: int, *, shuffle: bool) -> DataLoader[Any]:
    """A loader in this process over single samples.

    Raises:
        WorkloadError: When the data set is empty, or cannot say how many samples it has.
    """
    iterable = isinstance(dataset, IterableDataset)
    if not iterable:
        _check_length(dataset)
    shuffle = shuffle and not iterable
    return DataLoader(dataset, batch_size=batch_size, shuffle=shuffle)


def _check_length(dataset: Any) -> None:
    name = type(dataset).__name__
    if not hasattr(dataset, "__len__"):
        raise WorkloadError(
            f"the data set {name} has no __len__, so its samples cannot be put in an order: give "
            "it one, make it an IterableDataset, or give a DataLoader with a sampler."
        )
    if len(dataset) == 0:
        raise WorkloadError(f"the data ({name}) gave no batch: it is empty.")


def adapted(loader: DataLoader[Any], settings: Settings) -> DataLoader[Any]:
    """A copy of ``loader`` with the settings applied.

    Data set, sampler, collate function, generator, worker function, timeout and whatever else the
    loader or its class holds are the same objects; worker processes are not shared.

    Raises:
        SettingError: When a setting cannot act on this loader; the message says why.
    """
    copy: DataLoader[Any] = object.__new__(type(loader))
    state = dict(loader.__dict__)
    state["_iterator"] = None
    if settings.batch_size is not None:
        _set_batch_size(state, loader, settings.batch_size)
    _set_workers(state, loader, settings)
    if settings.pin_memory is not None:
        state["pin_memory"] = settings.pin_memory
    copy.__dict__.update(state)
    return copy


def _set_batch_size(state: dict[str, Any], loader: DataLoader[Any], size: int) -> None:
    if loader.batch_size == size:
        return
    if loader.batch_size is None:
        how = (
            "its batch_sampler makes the batches: give the sampler another batch size"
            if loader.batch_sampler is not None
            else "batch_size=None means that its data set gives whole batches: change them there"
        )
        raise SettingError(f"batch_size={size} cannot act on this DataLoader: {how}.")
    if type(loader.batch_sampler) is not BatchSampler:
        raise SettingError(
            f"batch_size={size} cannot act on this DataLoader: its batch sampler is a "
            f"{type(loader.batch_sampler).__name__}, which makes batches in its own way."
        )
    state["batch_size"] = size
    state["batch_sampler"] = BatchSampler(loader.sampler, size, loader.drop_last)


def _set_workers(state: dict[str, Any], loader: DataLoader[Any], settings: Settings) -> None:
    workers = loader.num_workers if settings.workers is None else settings.workers
    if settings.workers is not None and settings.workers != loader.num_workers:
        _check_sharding(loader, workers)
    state["num_workers"] = workers
    if workers == 0:
        for name in ("prefetch_factor", "persistent_workers"):
            if getattr(settings, name):
                raise SettingError(
                    f"{name}={getattr(settings, name)} cannot act: this loader has no worker "
                    "processes. Set workers=1 or more with it."
                )
        state.update(prefetch_factor=None, persistent_workers=False, timeout=0)
        state["_DataLoader__multiprocessing_context"] = None
        return
    state["prefetch_factor"] = settings.prefetch_factor or loader.prefetch_factor or 2
    if settings.persistent_workers is not None:
        state["persistent_workers"] = settings.persistent_workers


def _check_sharding(loader: DataLoader[Any], workers: int) -> None:
    dataset = loader.dataset
    if workers < 2 or not isinstance(dataset, IterableDataset) or shards(loader):
        return
    raise SettingError(
        f"workers={workers} cannot act on {type(dataset).__name__}, an iterable data set that does "
        f"not divide itself: each worker would read all of it, and every sample would come "
        f"{workers} times. Divide it in __iter__ with torch.utils.data.get_worker_info(), or use "
        "workers=1 to load beside the training."
    )


def shards(loader: DataLoader[Any]) -> bool:
    """Whether an iterable data set divides its samples among workers, as far as code can tell.

    It does when its class, or a ``worker_init_fn``, is there to do so.
    """
    if loader.worker_init_fn is not None or isinstance(loader.dataset, IterDataPipe):
        return True
    classes = [c for c in type(loader.dataset).__mro__ if c.__module__ != Dataset.__module__]
    functions = [f for c in classes for f in vars(c).values() if isinstance(f, FunctionType)]
    return any("get_worker_info" in _names(f) for f in functions)


def _names(function: FunctionType) -> set[str]:
    """Names that a function, and the functions of its own module that it calls, use."""
    names = set(function.__code__.co_names)
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        if isinstance(called, FunctionType) and called.__module__ == function.__module__:
            names.update(called.__code__.co_names)
    return names


def start_method(loader: DataLoader[Any]) -> str:
    """How the workers of ``loader`` start: fork, spawn or forkserver."""
    context = loader.multiprocessing_context
    if context is None:
        # Asked plainly, multiprocessing would fix its default for the whole process.
        chosen = multiprocessing.get_start_method(allow_none=True)
        return chosen or multiprocessing.get_all_start_methods()[0]
    return str(context.get_start_method())


def interactive_part(loader: DataLoader[Any]) -> str | None:
    """Name of the first part of ``loader`` that a fresh worker process could not import."""
    if hasattr(sys.modules.get("__main__"), "__file__"):
        return None
    parts: tuple[Any, ...] = (loader.dataset, loader.collate_fn, loader.worker_init_fn)
    for part in parts:
        owner: type | Callable[..., Any] = part if isinstance(part, FunctionType) else type(part)
        if owner.__module__ == "__main__":
            return owner.__name__
    return None
