"""Each rank's share of every batch, so that all ranks together see the batches of one process."""

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, get_worker_info

from workbench.errors import SettingError
from workbench.workload.epoch_order import EpochOrder, begun
from workbench.workload.placement import moved, samples_in, tensors_of
from workbench.workload.snapshot.random_state import save_random_state
from workbench.workload.source import Source

_SEEDS_APART = 1_000_003


class Aside(AbstractContextManager[None]):
    """Random states from which the order of the data is drawn, the same on every rank.

    What a model draws, such as dropout, is to differ between ranks; what a sampler draws must not,
    or ranks would see some samples twice and others never.
    """

    def __init__(self) -> None:
        self._mine = self._others = save_random_state()
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:  # a loader with workers asks its sampler while it starts
            self._others = save_random_state()
            self._mine.restore()

    def states(self) -> dict[str, Any]:
        """These states, as :func:`~workbench.parallel.spread.random_states` gives them."""
        with self:
            return {
                "python": random.getstate(),
                "numpy": np.random.get_state(),
                "torch": torch.get_rng_state(),
            }

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._mine = save_random_state()
            self._others.restore()


@dataclass(frozen=True, kw_only=True)
class Part:
    """Which part of a batch: every ``of``-th sample, beginning with ``number``."""

    number: int
    of: int
    same_size: bool = False
    """Whether batches of another size than the first are left out: stages are made for one."""

    def whole(self, count: int) -> int:
        """Samples of a batch that divide evenly; the rest is left out on all ranks."""
        return count - count % self.of


_END = object()


def _drawn(
    begin: Callable[[], Iterator[Any]],
    part: Part,
    aside: Aside,
    size: Callable[[Any], int | None],
) -> Iterator[Any]:
    """The batches of one process, drawn as on every rank; those of an odd size may be left out."""
    first = None
    with aside:
        batches = begin()
    while True:
        with aside:
            batch = next(batches, _END)
        if batch is _END:
            return
        first = first or size(batch)
        if not part.same_size or size(batch) == first:
            yield batch


class PartOfBatches:
    """A batch sampler: of each batch of the user's own, the indices of one rank."""

    def __init__(self, batches: Iterable[Any], part: Part, aside: Aside) -> None:
        self._batches = batches
        self._part = part
        self._aside = aside

    def __iter__(self) -> Iterator[list[Any]]:
        part = self._part
        for batch in _drawn(self._batches.__iter__, part, self._aside, len):
            mine = list(batch)[part.number : part.whole(len(batch)) : part.of]
            if mine:
                yield mine

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]


class PartOfStream(IterableDataset[Any]):
    """An iterable data set of which every rank reads all and keeps its part."""

    def __init__(self, stream: Any, part: Part, aside: Aside) -> None:
        self._stream = stream
        self._part = part
        self._aside = aside

    def __iter__(self) -> Iterator[Any]:
        part = self._part
        with self._drawing():
            stream = iter(self._stream)
        while True:
            with self._drawing():
                group = list(islice(stream, part.of))
            if len(group) < part.of:
                return
            yield group[part.number]

    def _drawing(self) -> AbstractContextManager[None]:
        """The random states of the data; those of a worker are the same on every rank anyway."""
        return self._aside if get_worker_info() is None else nullcontext()


class RankWorkerStart:
    """What a worker of another rank than 0 does first: draw other random numbers."""

    def __init__(self, rank: int, then: Any) -> None:
        self._rank = rank
        self._then = then

    def __call__(self, worker: int) -> None:
        """Start the worker of this number."""
        info = get_worker_info()
        if info is not None:
            seed = (info.seed + self._rank * _SEEDS_APART) % 2**63
            torch.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed % 2**32)
        if self._then is not None:
            self._then(worker)


def share_source(
    source: Source,
    part: Part,
    notes: list[str],
    aside: Aside | None = None,
    order: EpochOrder | None = None,
) -> Source:
    """The source with one rank's part of every batch; ``part.of == 1`` takes all of it.

    Args:
        source: Of one process.
        part: Which one.
        notes: What was decided for the user is added.
        aside: From which random states the order of the data is drawn; those of now if left out.
        order: Of an epoch that may be under way.

    Raises:
        SettingError: When batches cannot be divided among so many ranks; says why.
    """
    aside = aside or Aside()
    loader = source.loader
    if part.same_size:
        notes.append("batches of another size than the first are left out: stages are made for one")
    if loader is None or loader.batch_sampler is None:
        return _cut(source, part, notes, aside)
    _check_size(loader.batch_size, part)
    copy: DataLoader[Any] = object.__new__(type(loader))
    state = dict(loader.__dict__) | {"_iterator": None}
    if isinstance(loader.dataset, IterableDataset):
        _share_stream(state, loader, part, aside, notes)
    else:
        _check_sampler(loader)
        state["batch_sampler"] = PartOfBatches(loader.batch_sampler, part, aside)
        if part.number:
            state["worker_init_fn"] = RankWorkerStart(part.number, loader.worker_init_fn)
        if part.of > 1:
            notes.append(
                f"each rank loads one of every {part.of} samples of a batch; of a last batch that "
                f"does not divide by {part.of} the rest is left out"
            )
    copy.__dict__.update(state)

    def epoch() -> Iterator[Any]:
        with aside:
            return iter(copy) if order is None else begun(copy, order)

    return replace(source, loader=copy, epoch=epoch)


def _share_stream(
    state: dict[str, Any], loader: DataLoader[Any], part: Part, aside: Aside, notes: list[str]
) -> None:
    size = loader.batch_size or part.of
    state["batch_sampler"] = BatchSampler(
        loader.sampler, size // part.of, loader.drop_last or part.same_size
    )
    if part.of == 1:
        return
    if divides_by_rank(loader.dataset):
        notes.append("the iterable data set divides itself among ranks, as its code says")
        return
    state["dataset"] = PartOfStream(loader.dataset, part, aside)
    notes.append(
        f"every rank reads all of the iterable data set and keeps one of every {part.of} "
        "samples: its reading is not shared. A data set that asks torch.distributed.get_rank() "
        "divides itself"
    )


def divides_by_rank(dataset: Any) -> bool:
    """Whether the code of an iterable data set asks for its rank."""
    classes = [c for c in type(dataset).__mro__ if c.__module__ != Dataset.__module__]
    functions = [f for c in classes for f in vars(c).values() if isinstance(f, FunctionType)]
    return any("get_rank" in f.__code__.co_names for f in functions)


def _check_size(size: int | None, part: Part) -> None:
    if size is not None and size % part.of:
        raise SettingError(
            f"a batch of {size} samples does not divide by {part.of} ranks: use "
            f"batch_size={max(size - size % part.of, part.of)}, or another world_size."
        )


def _check_sampler(loader: DataLoader[Any]) -> None:
    sampler: Any = loader.sampler
    copies = getattr(sampler, "num_replicas", 1)
    if isinstance(copies, int) and copies > 1:
        raise SettingError(
            f"the loader's {type(sampler).__name__} gives the samples of rank {sampler.rank} of "
            f"{copies} only: give the loader a plain sampler, and each rank gets its share of it."
        )


def _cut(source: Source, part: Part, notes: list[str], aside: Aside) -> Source:
    """Batches that are made elsewhere: every rank takes all of them and cuts out its part."""
    if part.of > 1:
        notes.append(
            f"{source.kind} gives whole batches: every rank makes all of them and keeps one of "
            f"every {part.of} samples, so that loading is not shared"
        )

    def epoch() -> Iterator[Any]:
        for batch in _drawn(source.epoch, part, aside, samples_in):
            mine = batch if part.of == 1 else cut_batch(batch, part)
            if mine is not None:
                yield mine

    return replace(source, loader=None, epoch=epoch, iterated=None)


def cut_batch(batch: Any, part: Part) -> Any:
    """A part of a batch; ``None`` when the batch has too few samples to divide.

    Raises:
        SettingError: When its tensors have no common first dimension.
    """
    size = samples_in(batch)
    if size is None or any(t.dim() and t.shape[0] != size for t in tensors_of(batch)):
        raise SettingError(
            f"batches cannot be divided among {part.of} ranks: their tensors have no common first "
            "dimension. Give the Dataset or a plain DataLoader as data, or use parallel='tp'."
        )
    whole = part.whole(size)
    if not whole:
        return None

    def take(tensor: Tensor) -> Tensor:
        return tensor[part.number : whole : part.of] if tensor.dim() else tensor

    return moved(batch, take)
