"""A private copy of the user's loader with settings applied; the user's stays as it is."""

import multiprocessing
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FunctionType
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, IterDataPipe

from workbench.errors import SettingError, WorkloadError
from workbench.machine import usable_cpus
from workbench.settings import Settings, asked_of_workers
from workbench.workload.switches.batched_fetch import set_batched_fetch

LEAST_MOST, MOST_PER_CPU = 64, 32
"""Own choice: so many worker processes are never refused, and so many for each processor."""
LOADER_SETTINGS = (
    *("batch_size", "workers", "prefetch_factor", "pin_memory", "persistent_workers"),
    *("drop_last", "batched_fetch", "in_order", "multiprocessing_context", "worker_threads"),
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


def adapted(loader: DataLoader[Any], settings: Settings, undo: ExitStack) -> DataLoader[Any]:
    """A copy of ``loader`` with the settings applied.

    Data set, sampler, collate function, generator, worker function, timeout and whatever else the
    loader or its class holds are the same objects; worker processes are not shared.

    Raises:
        SettingError: When a setting cannot act on this loader; the message says why.
    """
    copy: DataLoader[Any] = object.__new__(type(loader))
    state = dict(loader.__dict__)
    state["_iterator"] = None
    _set_batches(state, loader, settings)
    _set_workers(state, loader, settings)
    if settings.pin_memory is not None:
        state["pin_memory"] = settings.pin_memory
    if settings.batched_fetch is not None:
        set_batched_fetch(loader, state, settings.batched_fetch, undo)
    copy.__dict__.update(state)
    return copy


def _set_batches(state: dict[str, Any], loader: DataLoader[Any], settings: Settings) -> None:
    size = loader.batch_size if settings.batch_size is None else settings.batch_size
    drop = loader.drop_last if settings.drop_last is None else settings.drop_last
    if size == loader.batch_size and (settings.drop_last is None or drop == loader.drop_last):
        return
    name = "batch_size" if size != loader.batch_size else "drop_last"
    cannot = f"{name}={getattr(settings, name)} cannot act on this DataLoader: "
    if loader.batch_size is None:
        how = (
            "its batch_sampler makes the batches: change them there"
            if loader.batch_sampler is not None
            else "batch_size=None means that its data set gives whole batches: change them there"
        )
        raise SettingError(f"{cannot}{how}.")
    if type(loader.batch_sampler) is not BatchSampler:
        raise SettingError(
            f"{cannot}its batch sampler is a {type(loader.batch_sampler).__name__}, which makes "
            "batches in its own way."
        )
    state.update(batch_size=size, drop_last=drop)
    state["batch_sampler"] = BatchSampler(loader.sampler, size or 1, drop)


def _set_workers(state: dict[str, Any], loader: DataLoader[Any], settings: Settings) -> None:
    workers = loader.num_workers if settings.workers is None else settings.workers
    if settings.workers is not None and settings.workers != loader.num_workers:
        _check_number(workers)
        _check_sharding(loader, workers)
    state["num_workers"] = workers
    if workers == 0:
        for name in asked_of_workers(settings.changes()):
            raise SettingError(
                f"{name}={getattr(settings, name)} cannot act: this loader has no worker "
                "processes. Set workers=1 or more with it."
            )
        state.update(prefetch_factor=None, persistent_workers=False, timeout=0)
        state["_DataLoader__multiprocessing_context"] = None
        return
    state["prefetch_factor"] = settings.prefetch_factor or loader.prefetch_factor or 2
    for name in ("persistent_workers", "in_order"):
        if getattr(settings, name) is not None:
            state[name] = getattr(settings, name)
    if settings.multiprocessing_context is not None:
        state["_DataLoader__multiprocessing_context"] = _context(settings.multiprocessing_context)
    if settings.worker_threads is not None:
        state["worker_init_fn"] = WorkerStart(settings.worker_threads, loader.worker_init_fn)


def _context(name: str) -> Any:
    if name not in multiprocessing.get_all_start_methods():
        known = ", ".join(multiprocessing.get_all_start_methods())
        raise SettingError(
            f"multiprocessing_context={name!r} cannot act: this system starts processes by {known}."
        )
    return multiprocessing.get_context(name)


def _set_threads(threads: int) -> None:
    """Of torch's operators, and of OpenCV's where the program uses it; each has its own pool."""
    torch.set_num_threads(threads)
    opencv = sys.modules.get("cv2")
    if opencv is not None:
        opencv.setNumThreads(threads)


class WorkerStart:
    """What a worker does first: set its threads, and again after the user's own function."""

    def __init__(self, threads: int, then: Callable[[int], None] | None) -> None:
        self.threads = threads
        self.then = then

    def __call__(self, worker: int) -> None:
        """Start the worker of this number."""
        _set_threads(self.threads)
        if self.then is not None:
            self.then(worker)
            _set_threads(self.threads)


def _check_number(workers: int) -> None:
    most = max(LEAST_MOST, MOST_PER_CPU * usable_cpus())
    if workers > most:
        raise SettingError(
            f"workers={workers} cannot act: each is a process of its own, and more than {most} "
            "would bring this machine to a halt."
        )


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
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if file is not None and Path(file).exists():  # a program from a pipe has "<stdin>"
        return None
    start = loader.worker_init_fn
    start = start.then if isinstance(start, WorkerStart) else start
    parts: tuple[Any, ...] = (loader.dataset, loader.collate_fn, start)
    for part in parts:
        owner: type | Callable[..., Any] = part if isinstance(part, FunctionType) else type(part)
        if owner.__module__ == "__main__":
            return owner.__name__
    return None
