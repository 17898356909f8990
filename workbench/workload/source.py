"""Where the batches of a run come from: the user's data, ready to be iterated epoch by epoch."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from torch.utils.data import DataLoader, RandomSampler

from workbench.errors import SettingError, WorkloadError
from workbench.settings import Settings
from workbench.workload.loader import (
    LOADER_SETTINGS,
    adapted,
    is_plain,
    loader_for,
    start_method,
)
from workbench.workload.workload import (
    DEFAULT_BATCH_SIZE,
    Workload,
    can_be_iterated,
    is_data_set,
    is_factory,
)


@dataclass(frozen=True, kw_only=True)
class Source:
    """A way to start an epoch, and what is known about it."""

    epoch: Callable[[], Iterator[Any]]
    kind: str
    """Class name of what the user gave."""
    loader: DataLoader[Any] | None
    """A private loader, when the data is a ``Dataset`` or a plain ``DataLoader``."""
    iterated: Any = None
    """What is iterated where there is no private loader."""
    given_batch_size: int | None = None
    """Samples per batch before any setting, where the loader fixes it."""

    @property
    def batch_size(self) -> int | None:
        """Samples per batch, where the loader fixes it."""
        return None if self.loader is None else self.loader.batch_size


def open_source(work: Workload, settings: Settings, notes: list[str], undo: ExitStack) -> Source:
    """Make the source of batches; what is decided for the user is added to ``notes``.

    Raises:
        SettingError: When a loader setting cannot act on this kind of data.
        WorkloadError: When a data function gives something that cannot be iterated.
    """
    data = work.data
    if is_factory(data):
        data = data()
        if hasattr(type(data), "__next__"):
            _refuse(settings, "the data function gives an iterator")
            return Source(epoch=_remade(data, work.data), kind=type(data).__name__, loader=None)
        if isinstance(data, str | bytes) or not can_be_iterated(data):
            raise WorkloadError(
                f"the data function gave {type(data).__name__}; it must return a Dataset, a "
                "DataLoader or an iterable of batches."
            )
    if is_data_set(data, work.batch_size):
        return _from_data_set(work, data, settings, notes, undo)
    if isinstance(data, DataLoader) and is_plain(data):
        return _from_loader(data, settings, notes, undo)
    why = (
        f"{type(data).__name__} is a loader with an iteration of its own"
        if isinstance(data, DataLoader)
        else f"data ({type(data).__name__}) gives batches that are made elsewhere"
    )
    _refuse(settings, why)
    kind = type(data).__name__
    if isinstance(data, DataLoader) and _STARTED in vars(data):
        mine = _apart(data)
        return Source(epoch=lambda: iter(mine), kind=kind, loader=mine)
    return Source(epoch=lambda: iter(data), kind=kind, loader=None, iterated=data)


_STARTED = "_initial_iter_for_state_dict"
"""What torchdata's loader knows of an iteration that it started to be asked for its state."""


def _apart(loader: DataLoader[Any]) -> DataLoader[Any]:
    """A copy of a loader whose state tells of an iteration: with one of its own."""
    copy: DataLoader[Any] = object.__new__(type(loader))
    copy.__dict__.update(vars(loader) | {"_iterator": None, _STARTED: False})
    return copy


def _from_data_set(
    work: Workload, data: Any, settings: Settings, notes: list[str], undo: ExitStack
) -> Source:
    size = work.batch_size
    if size is None:
        size = DEFAULT_BATCH_SIZE
        if settings.batch_size is None:
            notes.append(f"batch size {size}, because none was given with the data set")
    shuffle = work.trains or work.step is not None
    loader = loader_for(data, size, shuffle=shuffle)
    order = "shuffled" if isinstance(loader.sampler, RandomSampler) else "in order"
    notes.append(f"samples of the data set are read {order}; a DataLoader sets its own order")
    made = _from_loader(loader, settings, notes, undo)
    return replace(made, kind=type(data).__name__)


def _from_loader(
    data: DataLoader[Any], settings: Settings, notes: list[str], undo: ExitStack
) -> Source:
    loader = adapted(data, settings, undo)
    started_anew = settings.multiprocessing_context is not None or not data.num_workers
    if loader.num_workers and started_anew and start_method(loader) != "fork":
        notes.append(
            f"workers start by {start_method(loader)}: torch lets tensors of the data set move to "
            "shared memory for that, where they stay"
        )
    return Source(
        epoch=lambda: iter(loader),
        kind=type(data).__name__,
        loader=loader,
        given_batch_size=data.batch_size,
    )


def _remade(first: Any, make: Callable[[], Any]) -> Callable[[], Iterator[Any]]:
    """Epochs of a function that gives one-shot iterators: the first is the one at hand."""
    ready = [first]

    def epoch() -> Iterator[Any]:
        return iter(ready.pop() if ready else make())

    return epoch


def _refuse(settings: Settings, why: str) -> None:
    asked = [name for name in LOADER_SETTINGS if getattr(settings, name) is not None]
    if asked:
        raise SettingError(
            f"{', '.join(asked)} cannot act: {why}. Give the Dataset or a plain DataLoader as data "
            f"to switch {'it' if len(asked) == 1 else 'them'}."
        )
