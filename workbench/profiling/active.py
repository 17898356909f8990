"""A capture while it runs: the loop's thread, its waits, and everything that must be undone."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from workbench.profiling.phases import CapturePlan
from workbench.profiling.schedule import Schedule
from workbench.profiling.watch import end_iteration
from workbench.recording.compilation import compile_counters
from workbench.recording.garbage import GarbageProbe
from workbench.recording.labels import Labels
from workbench.recording.load import LoadProbe
from workbench.recording.loader.recorder import LoaderRecorder
from workbench.recording.ownership import Ownership
from workbench.recording.step_starts import StepStarts
from workbench.recording.warned import WarningLog
from workbench.settings import Record

INPUT_RANGE = "workbench.input"


@dataclass(kw_only=True)
class Seen:
    """What was seen of a loop beside its steps; complete when the capture has stopped."""

    watches: bool = False
    """Whether the loop takes its batches through ``watch``."""
    empty: bool = False
    """Whether a watched loader ended before its first batch."""
    loader: dict[str, Any] = field(default_factory=dict)
    garbage_collection: dict[str, Any] | None = None
    compilation: dict[str, Any] | None = None
    load: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    why: str | None = None
    """What an error of the loop means and what to do about it, where that is known."""


class Active:
    """Everything that is switched on between entering and leaving a capture."""

    def __init__(self, owner: Ownership, plan: CapturePlan, record: Record) -> None:
        self.owner = owner
        self.labels = Labels()
        self.seen = Seen()
        self._thread = threading.current_thread()
        self._process = os.getpid()
        self._waited_ns = 0
        self._batches = 0
        self._starting: Any = None
        """The loader whose start failed."""
        self._latest: Any = None
        """The loader that started last."""
        self._compiled = compile_counters()
        self._starts = StepStarts()
        self._starts.mark()
        self._load = LoadProbe()
        self._warnings = WarningLog()
        self._garbage = GarbageProbe()
        self.loader = LoaderRecorder(on=record.loader)
        self._warnings.start()
        self._garbage.start()
        try:
            self.loader.start()
            self.schedule = Schedule(plan, record, self._garbage)
        except BaseException:
            self._switch_off()
            raise

    @property
    def waited_ns(self) -> int:
        """How long the step under way has waited for its input so far."""
        return self._waited_ns

    def is_here(self) -> bool:
        """Whether this is the thread that runs the loop."""
        return threading.current_thread() is self._thread and not self.is_copy()

    def is_over(self) -> bool:
        """Whether the loop's thread has ended; torch's recording then ended with it."""
        return not self._thread.is_alive()

    def is_copy(self) -> bool:
        """Whether this process was forked inside the capture, which is its parent's."""
        return os.getpid() != self._process

    def watched(self, loader: dict[str, Any], length: int | None) -> None:
        """An iteration over a watched loader begins."""
        self.seen.watches = True
        self.seen.loader = loader or self.seen.loader
        if self.is_here() and self.schedule.done == 0 and self._batches == 0:
            self.schedule.fit(length)

    def step(self) -> None:
        """The loop has completed a step."""
        from workbench.workload.interrupts import Deferred

        with Deferred():
            self.schedule.step(self._waited_ns)
            self.loader.probe.step = self.schedule.done
            self._starts.mark()
            if self.schedule.phases[-1].is_full:
                self.loader.finish()  # the loop is left alone from now on
        self._waited_ns = self._batches = 0

    def iterate(self, loader: Any, make: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """The iterator of a watched loader, looked into where this is the loop's thread."""
        from workbench.workload.interrupts import Deferred
        from workbench.workload.shutdown import end_half_started

        if not self.is_here():
            return make()
        self._starting, self._latest, iterator = loader, loader, None
        try:
            with Deferred():  # half-started workers would be nobody's
                iterator = self.loader.probe.iterate(loader, make)
        except BaseException as error:
            if iterator is None:
                end_half_started(error)
            else:
                end_iteration(loader, iterator)
            raise
        self._starting = None
        self.loader.probe.without_batch()
        return iterator

    def ended(self) -> None:
        """A watched loader has no further batch."""
        if self.is_here():
            # Waits of this step so far: the loader's start, and not yet the one that ends now.
            self.seen.empty = self.schedule.done == 0 and self._batches <= 1
            self.loader.probe.without_batch()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The loop waits for a batch; elsewhere than on its thread nobody is kept waiting."""
        if not self.is_here():
            yield
            return
        self.schedule.guard(self._batches)
        began = time.monotonic_ns()
        try:
            with self.range(INPUT_RANGE):
                yield
        finally:
            ended = time.monotonic_ns()
            self.loader.probe.waited(began, ended)
            self._waited_ns += ended - began
            self._batches += 1

    def range(self, label: str) -> AbstractContextManager[object]:
        """A named range in the trace, where one is being recorded."""
        window = self.schedule.window
        if window is None or not (self.is_here() and self.schedule.is_recording):
            return nullcontext()
        return window.range(label)

    def explained(self, error: BaseException) -> str | None:
        """What to do about an error of the loop's loader; ``None`` for any other error."""
        from workbench.recording.loader.probe import torch_loader
        from workbench.workload.pickling import (
            explain_interactive,
            explain_pickling,
            starts_by_pickling,
        )
        from workbench.workload.worker_death import explain_worker_death

        why = explain_worker_death(error, self.loader.processes)
        latest = torch_loader(self._latest)
        if why is not None and starts_by_pickling(latest):  # it dies before it says anything else
            why = explain_interactive(latest) or why
        if why is None and self._starting is not None:
            why = explain_pickling(error, self._starting)
        self.seen.why = why
        return why

    def stop(self) -> None:
        """Switch everything off and note what was seen."""
        try:
            self.schedule.stop()
        finally:
            self._switch_off()
        self.seen.garbage_collection = self._garbage.to_json()
        counted = compile_counters().since(self._compiled)
        self.seen.compilation = {**counted.to_json(), "functions": counted.recompiled(self._starts)}
        self.seen.load = self._load.to_json()
        self.seen.warnings = self._warnings.found
        self.seen.labels = self.labels.real

    def _switch_off(self) -> None:
        self._garbage.stop()
        self._warnings.stop()
        self.loader.finish()
