"""An endless stream of batches over epochs, and its end."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol, Self

from torch.autograd.profiler import record_function

from workbench.errors import WorkloadError
from workbench.workload.inference_mode import outside_inference_mode
from workbench.workload.interrupts import Deferred
from workbench.workload.pickling import (
    explain_interactive,
    explain_pickling,
    starts_by_pickling,
)
from workbench.workload.shutdown import end_half_started, shut_down
from workbench.workload.source import Source
from workbench.workload.taking_over import whole_take_over
from workbench.workload.worker_death import worker_death_explained

INPUT_RANGE = "workbench.input"


class Probe(Protocol):
    """Looks into loaders as they start."""

    def iterate(self, loader: Any, make: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """The iterator that ``make`` gives for ``loader``."""

    def join(self, loader: Any, iterator: Iterator[Any]) -> None:
        """``loader`` gives batches through ``iterator`` already."""


class Batches(Iterator[Any]):
    """Batch after batch, epoch after epoch; the wait for each is a range in the trace.

    The range covers the start of an epoch too: starting workers is waiting for input.
    """

    def __init__(self, source: Source) -> None:
        self.epochs = 0
        """Epochs that were read to their end."""
        self.probe: Probe | None = None
        """Is told of every epoch that starts, where somebody looks into the loader."""
        self.on_end: Callable[[], None] | None = None
        """Called when an epoch was read to its end, before the next one starts."""
        self._source: Source | None = source
        self._iterator: Iterator[Any] | None = None
        self._in_epoch = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        with (
            worker_death_explained(self._workers()),
            whole_take_over(),
            outside_inference_mode(),
            record_function(INPUT_RANGE),
        ):
            return self._fetch()

    def close(self) -> None:
        """End workers and generators; no more batches come after it."""
        try:
            self.restart()
        finally:
            self._source = None

    def restart(self) -> None:
        """End workers and generators; the next batch begins a new epoch with new ones."""
        iterator, self._iterator = self._iterator, None
        if iterator is not None:
            shut_down(iterator)
        loader = None if self._source is None else self._source.loader
        if loader is not None and loader.__dict__.get("_iterator") is not None:
            shut_down(loader.__dict__["_iterator"])
            loader.__dict__["_iterator"] = None

    def join(self, probe: Probe) -> None:
        """Let ``probe`` look into the epoch that goes on, as far as that can be, and later ones."""
        self.probe = probe
        if self._iterator is not None and self._source is not None:
            probe.join(_iterated(self._source), self._iterator)

    @property
    def under_way(self) -> bool:
        """Whether an epoch has begun and is not over."""
        return self._iterator is not None

    def drain(self) -> list[Any]:
        """The batches that workers have under way, to the last that the source hands out."""
        under_way: list[Any] = []
        iterator, self._iterator = self._iterator, None
        if iterator is not None:
            try:
                under_way.extend(iterator)
            finally:
                shut_down(iterator)
        return under_way

    def workers(self) -> tuple[Any, ...]:
        """The worker processes of this epoch."""
        return tuple(self._workers())

    def waiting(self) -> int | None:
        """Batches that are ready to be taken; ``None`` where nobody can tell."""
        iterator = self._iterator
        queue = getattr(iterator, "_data_queue", None)
        if queue is None:
            return None
        try:
            ready = queue.qsize()
        except (NotImplementedError, OSError, ValueError):  # macOS, or a queue that was closed
            return None
        kept = tuple(getattr(iterator, "_task_info", {}).values())
        return int(ready) + sum(len(task) == 2 for task in kept)

    def _workers(self) -> Iterator[Any]:
        """The worker processes of this epoch, once somebody asks."""
        yield from getattr(self._iterator, "_workers", ())

    def _fetch(self) -> Any:
        for _ in range(2):
            if self._iterator is None:
                self._start()
            try:
                batch = next(self._iterator)  # type: ignore[arg-type]
            except StopIteration:
                self._end_epoch()
                continue
            self._in_epoch += 1
            return batch
        raise AssertionError("an epoch without a batch is an error")

    def _start(self) -> None:
        if self._source is None:
            raise WorkloadError("the training is over: prepare the workload again for batches.")
        self._in_epoch = 0
        # Half-started workers would be nobody's, so an interrupt waits until they are all there.
        with Deferred():
            try:
                self._iterator = self._epoch(self._source)
            except BaseException as error:
                end_half_started(error)
                raise

    def _epoch(self, source: Source) -> Iterator[Any]:
        make = partial(_epoch, source)
        if self.probe is None:
            return make()
        return self.probe.iterate(_iterated(source), make)

    def _end_epoch(self) -> None:
        source = self._source
        if self._in_epoch == 0 and source is not None:
            raise WorkloadError(_no_batch(source, self.epochs))
        self.epochs += 1
        if self.on_end is not None:
            self.on_end()
        iterator, self._iterator = self._iterator, None
        if source is None or source.loader is None or not source.loader.persistent_workers:
            with Deferred(deaths=False):  # broken off half-way, its threads would be nobody's
                shut_down(iterator)


def _iterated(source: Source) -> Any:
    # Never asked whether it is true: that would ask a loader for its length.
    return source.iterated if source.loader is None else source.loader


def _epoch(source: Source) -> Iterator[Any]:
    loader = source.loader
    if loader is None or not starts_by_pickling(loader):
        return source.epoch()
    why = explain_interactive(loader)
    if why is not None:
        raise WorkloadError(why)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Got pickle error")
            return source.epoch()
    except Exception as error:
        why = explain_pickling(error, loader)
        if why is None:
            raise
        raise WorkloadError(why) from error


def _no_batch(source: Source, epochs: int) -> str:
    if epochs:
        return (
            f"the data ({source.kind}) gave batches once and none afterwards: it can be read only "
            "once. Give a function that makes it, such as data=lambda: make_batches()."
        )
    loader = source.loader
    if loader is not None and loader.drop_last:
        return (
            f"the data ({source.kind}) gave no batch: with drop_last=True it needs at least "
            f"{loader.batch_size} samples."
        )
    return f"the data ({source.kind}) gave no batch: it is empty."
