"""The batches of one training whose settings change: the place in the epoch is never lost."""

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from torch.utils.data import IterableDataset

from workbench.settings import Settings
from workbench.workload.batches import Batches, Probe
from workbench.workload.epoch_order import EpochOrder, begun, in_order
from workbench.workload.loader import LOADER_SETTINGS
from workbench.workload.source import Source, open_source
from workbench.workload.workload import Workload, is_factory


@dataclass(kw_only=True)
class _Ready:
    """A batch that was taken from a loader already."""

    batch: Any
    counted: bool
    """Whether its indices are still ahead in the order of the epoch."""


class Feed:
    """Batch after batch of one workload, under loader settings that may change between steps.

    A loader is made anew only for settings that concern it. The new one goes on with the very
    samples that are left of the epoch, in the same order; what workers had read ahead is read
    again. Where data gives batches by itself there is nothing to be made anew. The rest of an
    iterable data set cannot be handed to another loader: its epoch begins anew then, which
    ``notes`` says.

    All calls come from the thread that trains.
    """

    def __init__(self, work: Workload) -> None:
        self.notes: list[str] = []
        """What was decided for the user about the data, under the settings of now."""
        self._work = work
        self._data: Any = None
        self._order = EpochOrder()
        self._settings: Settings | None = None
        self._source: Source | None = None
        self._batches: Batches | None = None
        self._placed = False
        self._whole = 1
        self._ready: deque[_Ready] = deque()
        self._now: _Ready | None = None
        self._epochs = 0
        self._undo = ExitStack()

    @property
    def source(self) -> Source:
        """Where batches come from now."""
        if self._source is None:
            raise AssertionError("the feed is opened before it is asked")
        return self._source

    @property
    def batches(self) -> Batches:
        """The stream of now."""
        if self._batches is None:
            raise AssertionError("the feed is opened before it is asked")
        return self._batches

    @property
    def epochs(self) -> int:
        """Epochs that were read to their end."""
        return self._epochs + (0 if self._batches is None else self._batches.epochs)

    def waiting(self) -> int | None:
        """Batches that lie ready; ``None`` where nobody can tell."""
        batches = self._batches
        return None if batches is None else batches.waiting()

    def workers(self) -> tuple[Any, ...]:
        """The worker processes of now."""
        return () if self._batches is None else self._batches.workers()

    def open(self, settings: Settings) -> str | None:
        """Go on under these settings.

        Returns:
            What is lost by it, a sentence; ``None`` if nothing.

        Raises:
            SettingError: When a setting cannot act on this data; the stream goes on as before.
        """
        if self._settings is not None and not _concern_loader(self._settings, settings):
            self._settings = settings
            return None
        notes, undo = list[str](), ExitStack()
        try:
            source = open_source(self._resolved(), settings, notes, undo)
        except BaseException:
            undo.close()
            raise
        lost = self._leave(source)
        self._undo, self.notes, self._settings = undo, notes, settings
        self._source = source
        self._batches = Batches(self._in_place(source))
        self._batches.on_end = self._order.end
        return lost

    def take(self) -> Any:
        """The next batch; it counts as trained on only by :meth:`done`."""
        if self._ready:
            self._now = self._ready.popleft()
            return self._now.batch
        batch = next(self.batches)
        self._now = _Ready(batch=batch, counted=True)
        return batch

    def done(self) -> None:
        """The batch was trained on."""
        now, self._now = self._now, None
        if now is not None and now.counted and self._placed:
            self._order.trained(self._whole)

    def again(self) -> None:
        """The batch was not trained on: it comes once more."""
        now, self._now = self._now, None
        if now is not None:
            self._ready.appendleft(now)

    def restart(self) -> None:
        """End the loader's workers; the next batch comes from new ones, at the same place."""
        self._ready = deque(one for one in self._ready if not one.counted)
        if self._batches is not None:
            self._batches.restart()

    def look_into(self, probe: Probe) -> str | None:
        """Let ``probe`` look into the loader of now, and into those that start later.

        Workers are started anew for it where the new ones go on with the very samples that are
        left of the epoch, in the same order.

        Returns:
            Why it sees workers only from outside until the next epoch; ``None`` if it sees all.
        """
        batches = self.batches
        why = None
        if not self._placed:
            why = f"{self.source.kind} is read from its beginning by every new worker"
        elif batches.workers() and not getattr(self.source.loader, "in_order", True):
            why = "with in_order=False nobody knows at which sample new workers would go on"
        if why is None:
            self.restart()
            batches.probe = probe
        else:
            batches.join(probe)
        return why if batches.workers() else None

    def look_away(self) -> None:
        """Nobody looks into loaders any more."""
        if self._batches is not None:
            self._batches.probe = None

    def lend(self) -> tuple[list[Any] | None, str | None]:
        """End the loader: another process goes on with the data.

        Returns:
            What is left of the epoch, ``None`` where one begins; and what is lost, a sentence.
        """
        lost, source = None, self._source
        if self._batches is not None and source is not None:
            if not self._placed and self._batches.under_way:
                lost = (
                    f"the epoch began anew: {source.kind} is read from its beginning by every "
                    "process, so its rest cannot be handed to another one"
                )
            self.restart()
        self._now = None
        return self._order.rest(), lost

    def take_back(self, rest: list[Any] | None, epochs: int, generators: list[Any]) -> None:
        """Go on where the other process ended."""
        if rest is None:
            self._order.end()
        else:
            self._order.resume(rest)
        self._epochs += epochs
        for mine, state in zip(self._order.generators(), generators, strict=False):
            mine.set_state(state)

    def close(self) -> None:
        """End workers and generators, and take back what was set for them."""
        batches, self._batches = self._batches, None
        self._ready.clear()
        self._now = None
        try:
            if batches is not None:
                batches.close()
        finally:
            self._undo.close()
            self._order.end()
            self._source = self._data = None

    def _resolved(self) -> Workload:
        """The workload with the data that a function has given, so that it is called once."""
        work = self._work
        if not is_factory(work.data):
            return work
        if self._data is None:
            data = work.data()
            if hasattr(type(data), "__next__"):
                return work  # its epochs are made by calling it
            self._data = data
        return replace(work, data=self._data)

    def _in_place(self, source: Source) -> Source:
        """The source with a loader that takes its indices from the order of the epoch."""
        loader = source.loader
        self._placed = loader is not None and not isinstance(loader.dataset, IterableDataset)
        if loader is None or not self._placed:
            return source
        placed, self._whole = in_order(loader, self._order)
        order = self._order
        least = self._whole if placed.drop_last else 1

        def epoch() -> Iterator[Any]:
            if order.under_way and not order.holds(least):
                order.end()  # the change came at the very end of the epoch
                self._epochs += 1
            return begun(placed, order)

        return replace(source, loader=placed, epoch=epoch)

    def _leave(self, source: Source) -> str | None:
        """End the loader of before; what the next one does not get again is kept here."""
        batches, before = self._batches, self._source
        if batches is None or before is None:
            return None
        lost = None
        loader = before.loader
        disordered = loader is not None and not getattr(loader, "in_order", True)
        if self._placed and disordered and self._order.under_way and batches.workers():
            self._order.hold_back()
            self._ready = deque(one for one in self._ready if not one.counted)
            self._ready.extend(_Ready(batch=b, counted=False) for b in batches.drain())
            self._order.go_on()
        elif self._placed:
            self._ready = deque(one for one in self._ready if not one.counted)
        elif batches.under_way:
            lost = (
                f"the epoch began anew: {before.kind} is read from its beginning by every loader, "
                "so its rest cannot be handed to another one"
            )
        self._epochs += batches.epochs
        self._batches = None
        try:
            batches.close()
        finally:
            self._undo.close()
        return lost


def _concern_loader(before: Settings, after: Settings) -> bool:
    names = (*LOADER_SETTINGS, "cpu_affinity")  # workers keep the CPUs that they started with
    return any(getattr(before, name) != getattr(after, name) for name in names)
