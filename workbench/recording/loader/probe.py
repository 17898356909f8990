"""The probes of one run: put on loaders as they start, taken off when the run has measured."""

import os
import shutil
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.recording.loader.attributes import Attributes
from workbench.recording.loader.context import ProbedContext
from workbench.recording.loader.counters import Counters, ThreadDelay
from workbench.recording.loader.fetch import FetchProbe
from workbench.recording.loader.folders import make_folder
from workbench.recording.loader.iterating import Delivery, IteratorProbe, kind_of
from workbench.recording.loader.reads import call_cost_ns
from workbench.recording.loader.switch import Switch

BATCHES_MOST = 20_000
"""Batches that are recorded; then the probes rest (about 10 MB of records)."""
_TRIES = 3
CONTEXT = "_DataLoader__multiprocessing_context"
"""Where torch's loaders keep how their workers start."""


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One start of a loader."""

    loader: int
    stream: int
    epoch: int
    start_ns: int
    iter_ns: int
    """Time in the loader's ``__iter__``: starting workers, or telling them to go on."""
    workers: int
    detail: str
    """What could be seen: all, worker processes, training process, or waits."""
    first_step: int


@dataclass(frozen=True, kw_only=True)
class Wait:
    """The loop waited for a batch."""

    start_ns: int
    end_ns: int
    step: int


def _nothing() -> None:
    pass


class LoaderProbe:
    """Records what loaders do between :meth:`start` and :meth:`rest`.

    All calls come from the loop's thread. The user's loaders are changed only while they start,
    and their iterators carry the probes until :meth:`rest`.

    Args:
        on_start: Called when worker processes were started.
        contexts: Is given what they were started by.
    """

    def __init__(
        self,
        on_start: Callable[[], None] = _nothing,
        contexts: list[ProbedContext] | None = None,
    ) -> None:
        self._on_start = on_start
        self.notes: list[str] = []
        self.epochs: list[Epoch] = []
        self.waits: list[Wait] = []
        self.streams: list[IteratorProbe] = []
        self.inline: dict[int, list[bytes]] = {}
        """Records of streams that load in this process."""
        self.unseen: list[Delivery] = []
        """Batches of loaders whose inside is not known: only the waits for them."""
        self.contexts = [] if contexts is None else contexts
        self.folder: Path | None = None
        self._switch: Switch | None = None
        self._attributes = Attributes()
        self._starting = Attributes()
        self._loaders: list[weakref.ref[Any] | int] = []
        self._known: dict[int, tuple[weakref.ref[Any], IteratorProbe]] = {}
        self._fetches: weakref.WeakSet[FetchProbe] = weakref.WeakSet()
        self._counters: Counters | None = None
        """Of the loop's thread, once it loads by itself: they hold files open."""
        self._process = os.getpid()
        self._delay = ThreadDelay()
        self._blind: int | None = None
        self._without = False
        self._call_ns = 1
        self.step = 0
        """The step that waits for batches now."""

    def start(self) -> None:
        """Get ready; loaders that start from now on are recorded."""
        try:
            self.folder = make_folder()
            self._switch = Switch(self.folder / "switch", make=True)
        except OSError as error:  # the run itself does without
            self.stop()
            self.notes.append(
                f"what the loader did was not recorded ({error.strerror}): free some space, or set "
                "TMPDIR to a folder on another disk"
            )
            return
        self._call_ns = call_cost_ns()

    @property
    def is_on(self) -> bool:
        """Whether it records."""
        return self._switch is not None

    def iterate(self, loader: Any, make: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """The iterator that ``make`` gives for ``loader``, with the probes on."""
        if not self.is_on:
            return make()
        inner = torch_loader(loader)
        probe = self._of(getattr(inner, "_iterator", None))
        alive = getattr(inner, "_iterator", None) is not None and probe is None
        context: ProbedContext | None = None
        if probe is not None:
            probe.epoch, probe.resetting = probe.epoch + 1, True
        elif inner is not None and inner.num_workers > 0:
            context = self._enter(inner)
        began = time.monotonic_ns()
        try:
            iterator = make()
        except BaseException:
            self._starting.restore()
            if context is not None:  # nobody else may have its number
                self.streams.append(self._stream())
            raise
        took = time.monotonic_ns() - began
        detail = self._attach(iterator, probe, context, alive=alive)
        if detail != "worker processes":
            self._starting.restore()
        if context is not None:
            self._on_start()
        number = len(self.streams) - 1 if probe is None else probe.stream
        self.epochs.append(
            Epoch(
                loader=self._number(loader),
                stream=number,
                epoch=self.streams[number].epoch,
                start_ns=began,
                iter_ns=took,
                workers=0 if inner is None else inner.num_workers,
                detail=detail,
                first_step=self.step,
            )
        )
        return iterator

    def join(self, loader: Any, iterator: Iterator[Any]) -> None:
        """``loader`` gives batches through ``iterator`` already; workers are seen from outside."""
        if not self.is_on:
            return
        inner, now = torch_loader(loader), time.monotonic_ns()
        detail = self._attach(iterator, None, None, alive=True)
        self.epochs.append(
            Epoch(
                loader=self._number(loader),
                stream=len(self.streams) - 1,
                epoch=0,
                start_ns=now,
                iter_ns=0,
                workers=0 if inner is None else inner.num_workers,
                detail=detail,
                first_step=self.step,
            )
        )

    def without_batch(self) -> None:
        """The wait that goes on now brings no batch: the loader starts, or has no further one."""
        self._without = True

    def waited(self, start_ns: int, end_ns: int) -> None:
        """The loop waited for a batch, or for a loader to start."""
        without, self._without = self._without, False
        if not self.is_on:
            return
        self.waits.append(Wait(start_ns=start_ns, end_ns=end_ns, step=self.step))
        if self._blind is not None and not without:
            self._starting.restore()
            self.unseen.append(
                Delivery(
                    stream=self._blind,
                    epoch=0,
                    batch=-1,
                    next_start_ns=start_ns,
                    next_ns=end_ns - start_ns,
                )
            )
        if len(self.waits) >= BATCHES_MOST:
            self.notes.append(
                f"what the loader did was recorded for the first {BATCHES_MOST} batches only"
            )
            self.rest()

    def rest(self) -> None:
        """Take all probes off; what was recorded stays until :meth:`stop`. May be repeated."""
        switch, self._switch = self._switch, None
        if switch is not None:
            if os.getpid() == self._process:  # in a forked child it is its parent's
                switch.turn_off()
            switch.close()
        self._starting.restore()
        self._attributes.restore()
        for fetch in self._fetches:
            fetch.close()
        self._fetches.clear()
        self._delay.close()
        if self._counters is not None:
            self._counters.close()

    def stop(self) -> None:
        """Rest, and delete the side files."""
        self.rest()
        folder, self.folder = self.folder, None
        if folder is None or os.getpid() != self._process:
            return
        for _ in range(_TRIES):  # a worker that starts just now may put its file there meanwhile
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break

    def _enter(self, loader: Any) -> ProbedContext:
        """Let the loader's workers start through us, until they have started."""
        import torch.multiprocessing

        for earlier in self.contexts:
            earlier.forget_ended()
        given = loader.multiprocessing_context
        real = torch.multiprocessing if given is None else given
        context = ProbedContext(given, real, str(self.folder), len(self.streams), self._call_ns)
        self._starting.set(loader, CONTEXT, context)
        self.contexts.append(context)
        return context

    def _attach(
        self,
        iterator: Any,
        probe: IteratorProbe | None,
        context: ProbedContext | None,
        *,
        alive: bool,
    ) -> str:
        self._blind = None
        if probe is not None:
            probe.resetting = False
            return "all"
        probe = self._stream()
        self.streams.append(probe)
        attach = kind_of(iterator)
        try:
            return self._look_into(iterator, attach, probe, context, alive=alive)
        except (AttributeError, TypeError):  # made like torch's, but not inside
            self._blind = probe.stream
            return "waits" if context is None else "worker processes"

    def _stream(self) -> IteratorProbe:
        number, attributes = len(self.streams), self._attributes
        return IteratorProbe(stream=number, attributes=attributes, delay=self._delay)

    def _look_into(
        self,
        iterator: Any,
        attach: Callable[..., Any] | None,
        probe: IteratorProbe,
        context: ProbedContext | None,
        *,
        alive: bool,
    ) -> str:
        if attach is IteratorProbe.attach:
            probe.attach(iterator)
            self._known[id(iterator)] = weakref.ref(iterator), probe
            if context is not None and context.processes:
                return "all"
            self.notes.append(
                "worker processes of a loader ran already before the measurement began, and only "
                "the training process's side of them was recorded"
                if alive
                else "what the worker processes of a loader did could not be recorded"
            )
            return "training process"
        if attach is IteratorProbe.attach_single:
            records = self.inline[probe.stream] = []
            self._counters = self._counters or Counters()
            fetch = FetchProbe(records.append, self._call_ns, self._counters)
            self._fetches.add(fetch)
            probe.attach_single(iterator, fetch)
            return "all"
        self._blind = probe.stream
        return "waits" if context is None else "worker processes"

    def _of(self, iterator: Any) -> IteratorProbe | None:
        known = self._known.get(id(iterator))
        return known[1] if known is not None and known[0]() is iterator else None

    def _number(self, loader: Any) -> int:
        for number, known in enumerate(self._loaders):
            if known == id(loader) or (isinstance(known, weakref.ref) and known() is loader):
                return number
        try:
            self._loaders.append(weakref.ref(loader))
        except TypeError:  # lists and tuples
            self._loaders.append(id(loader))
        return len(self._loaders) - 1


def torch_loader(loader: Any) -> Any:
    """The DataLoader that does the work in what the user iterates, or ``None``."""
    from torch.utils.data import DataLoader

    if isinstance(loader, DataLoader):
        within = getattr(loader, "base_dataloader", None)  # of accelerate
        return within if isinstance(within, DataLoader) else loader
    parts = getattr(loader, "__dict__", {})
    chained = parts.get("pipeline")  # of WebDataset
    values = [*parts.values(), *(chained if isinstance(chained, list | tuple) else ())]
    # By type alone: what only stands for something else is not asked what it is.
    return next((value for value in values if issubclass(type(value), DataLoader)), None)
