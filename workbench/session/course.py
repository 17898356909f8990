"""One training under changing settings: its batches, the settings in force, the times of steps."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch

from workbench.parallel.following import lanes
from workbench.parallel.lockstep import VALUES
from workbench.recording.loader.probe import LoaderProbe
from workbench.recording.telemetry import Telemetry
from workbench.recording.telemetry_meter import Meter, StepFacts, meter_for
from workbench.session.handover import Team
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
        self._team: Team | None = None
        self._broken = False
        """Whether what the ranks have trained is lost."""
        self._kept: Callable[[], bool] = bool
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
    def in_ranks(self) -> bool:
        """Whether ranks train in place of this process."""
        return self._team is not None

    def lanes(self) -> tuple[dict[str, float | None], ...]:
        """Times of the last step of each rank; empty where this process trains."""
        team = self._team
        return () if team is None else tuple(lanes(team.rows))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided for the user under the settings in force."""
        return tuple(self.training.notes if self._team is None else self._team.notes)

    @property
    def effective(self) -> dict[str, Any]:
        """What is in force by name."""
        return self.training.effective if self._team is None else self._team.effective

    @property
    def lost(self) -> str | None:
        """What of the data the settings in force have cost, a sentence."""
        if self._team is not None:
            return self._team.lost
        return None if self._stretch is None else self._stretch.lost

    def device(self) -> torch.device | None:
        """Where it trains; ``None`` while nothing is in force."""
        stretch, team = self._stretch, self._team
        if team is not None:
            return team.device
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
    def open(self, kept: Callable[[], bool]) -> Iterator[None]:
        """Batches, until the block ends; settings come into force inside.

        Args:
            kept: Whether what was trained is wanted when the block ends.
        """
        self._feed = Feed(self._work)
        try:
            yield
        finally:
            try:
                self.leave(wanted=kept())
            finally:
                feed = self.feed
                self._epochs, self._feed = self.epochs, None
                feed.close()

    def enter(self, settings: Settings) -> None:
        """Bring settings into force; none are before.

        Raises:
            SettingError: They cannot act here; none are in force then.
        """
        if settings.ranks is not None:
            self._team, self._broken = Team(self._work, settings, self.feed), False
            return
        self._stretch = Stretch(self._work, settings, self.feed)
        training = self._stretch.training
        key = str(training.device)
        if key not in self._meters:
            self._meters[key] = meter_for(training.device, self._telemetry)
        self._meter = training.control.watch = self._meters[key]
        self._meter.restart()
        self._hooks = watch_own_step(self._work, settings, self._meter)

    def leave(self, *, wanted: bool = True) -> None:
        """Take the settings in force back; doing it twice is fine.

        Args:
            wanted: Whether what ranks have trained is to be brought here.

        Raises:
            RankError: It could not be; everything is as it was when they took over.
        """
        team, self._team = self._team, None
        if team is not None:
            try:
                if wanted and not self._broken:
                    team.hand_back()
            finally:
                team.close()
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
        if self._team is not None:
            self._step_of_ranks(self._team, step=step, change=change)
            return
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

    def _step_of_ranks(self, team: Team, *, step: int, change: int) -> None:
        began = time.perf_counter_ns()
        try:
            with self._code.stage(TRAINING):
                row = team.step()
        except BaseException:
            self._broken = True
            raise
        epoch = self.epochs + int(row["epoch"])
        values = [row[name] for name in VALUES]
        facts = (row["loss"], row["samples"], epoch, change, False)
        self._telemetry.add((step, int(row["at_ns"]), *values, *facts))
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
