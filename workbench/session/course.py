"""One training under changing settings: its batches, the settings in force, the times of steps."""

import gc
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch

from workbench.recording.loader.probe import LoaderProbe
from workbench.recording.telemetry import Telemetry
from workbench.recording.telemetry_meter import Meter, StepFacts, meter_for
from workbench.session.handover import refuse_ranks
from workbench.session.own_step import watch_own_step
from workbench.session.stopping import LOADING, TRAINING
from workbench.settings import Settings
from workbench.workload import Workload
from workbench.workload.async_exceptions import Stages
from workbench.workload.feed import Feed
from workbench.workload.placement import samples_in
from workbench.workload.stretch import Stretch
from workbench.workload.training import Training


class Course:
    """For the thread that trains; other threads may only ask how much of what there is.

    Args:
        work: What is trained.
        telemetry: Where times of steps are written.
        code: Where the user's code runs, so that others may break it off.
    """

    def __init__(self, work: Workload, telemetry: Telemetry, code: Stages) -> None:
        self.steps_ns = 0
        """Time of all steps together."""
        self.probe: LoaderProbe | None = None
        """Is told how long steps wait, where somebody looks into the loader."""
        self._work = work
        self._telemetry = telemetry
        self._code = code
        self._epochs = 0
        self._spent_ns = 0
        self._feed: Feed | None = None
        self._stretch: Stretch | None = None
        self._meter: Meter | None = None
        self._meters: dict[str, Meter] = {}
        self._hooks = ExitStack()

    @property
    def epochs(self) -> int:
        """Epochs that were read to their end, of all trainings of this session."""
        feed = self._feed
        return self._epochs + (0 if feed is None else feed.epochs)

    @property
    def cost_ns(self) -> int:
        """What measuring steps took."""
        return self._spent_ns + sum(meter.cost_ns for meter in list(self._meters.values()))

    @property
    def feed(self) -> Feed:
        """The batches."""
        if self._feed is None:
            raise AssertionError("a training is opened before it is asked for batches")
        return self._feed

    @property
    def training(self) -> Training:
        """The training under the settings in force."""
        if self._stretch is None:
            raise AssertionError("settings come into force before a step is made")
        return self._stretch.training

    @property
    def lost(self) -> str | None:
        """What of the data the settings in force have cost, a sentence."""
        return None if self._stretch is None else self._stretch.lost

    def device(self) -> torch.device | None:
        """Where it trains; ``None`` while nothing is in force."""
        stretch = self._stretch
        return None if stretch is None else stretch.training.device

    def waiting(self) -> int | None:
        """Batches that lie ready; ``None`` where nobody can tell."""
        feed = self._feed
        return None if feed is None else feed.waiting()

    def workers(self) -> tuple[Any, ...]:
        """The loader's worker processes."""
        feed = self._feed
        return () if feed is None else feed.workers()

    @contextmanager
    def open(self) -> Iterator[None]:
        """Batches, until the block ends; settings come into force inside."""
        self._feed = Feed(self._work)
        try:
            yield
        finally:
            try:
                self.leave()
            finally:
                feed = self.feed
                self._epochs, self._feed = self.epochs, None
                feed.close()

    def enter(self, settings: Settings) -> None:
        """Bring settings into force; none are before.

        Raises:
            SettingError: They cannot act here; none are in force then.
        """
        refuse_ranks(settings)
        self._stretch = Stretch(self._work, settings, self.feed)
        training = self._stretch.training
        key = str(training.device)
        if key not in self._meters:
            self._meters[key] = meter_for(training.device, self._telemetry)
        self._meter = training.control.watch = self._meters[key]
        self._meter.restart()
        self._hooks = watch_own_step(self._work, settings, self._meter)

    def leave(self) -> None:
        """Take the settings in force back; doing it twice is fine."""
        stretch, self._stretch = self._stretch, None
        self._hooks.close()
        self.interrupted()
        if stretch is not None:
            stretch.training.control.watch = None
            stretch.end()

    def interrupted(self) -> None:
        """What comes before the next step belongs to none."""
        if self._meter is not None:
            with suppress(RuntimeError):  # a device that has failed has no times to give
                self._meter.restart()

    def step(self, *, step: int, change: int, profiled: bool) -> None:
        """Train one step and write its times.

        Args:
            step: Its number.
            change: Number of the change of settings in force.
            profiled: Whether its times are not those of the training alone.
        """
        meter, feed = self._meter, self.feed
        if meter is None:
            raise AssertionError("settings come into force before a step is made")
        began = time.perf_counter_ns()
        meter.begin_input()
        with self._code.stage(LOADING):
            held = [feed.take() if self.probe is None else self._seen(self.probe, step)]
        meter.end_input()
        with self._code.stage(TRAINING):
            samples = samples_in(held[0])
            loss = self.training.step(held.pop())
        feed.done()
        facts = StepFacts(
            step=step, epoch=feed.epochs, change=change, profiled=profiled, samples=samples
        )
        meter.end_step(facts, loss)
        self.steps_ns += time.perf_counter_ns() - began

    def _seen(self, probe: LoaderProbe, step: int) -> Any:
        probe.step = step
        began = time.monotonic_ns()
        batch = self.feed.take()
        probe.waited(began, time.monotonic_ns())
        return batch

    def drop_gradients(self) -> None:
        """Free what a step that ran out of memory has left behind."""
        if self._work.step is None:
            for optimizer in self._work.optimizers:
                optimizer.zero_grad(set_to_none=True)
        gc.collect()
        if torch.accelerator.is_available():
            module: Any = torch.get_device_module(torch.accelerator.current_accelerator())
            if hasattr(module, "empty_cache"):
                module.empty_cache()

    def forget_meters(self) -> None:
        """Let go of what times steps; a device's events go with its training."""
        self._spent_ns += self.cost_ns
        self._meter, self._meters = None, {}
