"""Drive a prepared workload step by step, and measure how long each step waits for its batch."""

import time
from typing import TYPE_CHECKING, Any

from workbench.recording.limits import LOADING, TRAINING, Limits
from workbench.recording.loader.probe import LoaderProbe
from workbench.recording.progress import Progress
from workbench.recording.step_starts import StepStarts

if TYPE_CHECKING:
    from collections.abc import Callable

    from workbench.workload.training import Training


class Loop:
    """Takes batches and steps for as long as it is asked; epochs repeat."""

    def __init__(
        self, training: "Training", limits: Limits, progress: Progress, probe: LoaderProbe
    ) -> None:
        self.steps = 0
        self.starts = StepStarts()
        self.progress = progress
        self.epoch_length: int | None = None
        """Batches in the first epoch that came to its end."""
        self.look: Callable[[Any, int], bool] | None = None
        """Is shown each batch and the number of its epoch, outside the wait for it, until it says
        no more."""
        self.losses: list[Any] | None = None
        """Grows by the loss of every step, still on its device, where somebody wants them."""
        self._training = training
        self._batches = training.batches()
        self._batches.probe = probe
        self._probe = probe
        self._limits = limits
        self._taken = 0

    @property
    def epochs(self) -> int:
        """Epochs that were read to their end."""
        return self._training.epochs

    def step(self) -> int:
        """One whole step; returns the nanoseconds that it waited for its batch."""
        self._probe.step = self.steps
        began = time.monotonic_ns()
        batch = self._next()
        ended = time.monotonic_ns()
        self._probe.waited(began, ended)
        if self.look is not None and not self.look(batch, self.epochs):
            self.look = None
        held = [batch]
        del batch  # a traceback of a failing step must not keep it
        self.serve(held)
        return ended - began

    def draw(self) -> Any:
        """A batch without a step; the probes are not told that anybody waited for it."""
        return self._next()

    def serve(self, held: list[Any]) -> None:
        """One step on the first of these batches, which is taken out of the list."""
        batch = held.pop(0)
        self.starts.mark()
        try:
            with self._limits.stage(TRAINING):
                loss = self._training.step(batch)
                if self.losses is not None:  # what else a step returns may be large
                    self.losses.append(loss if loss is not None and loss.numel() == 1 else None)
        finally:
            del batch
        self.steps += 1
        self.progress.advance()

    def rest_probes(self) -> None:
        """Take the probes off the loader: what follows is not recorded."""
        self._probe.rest()

    def end_loader(self) -> None:
        """End the loader's worker processes; the next batch would begin a new epoch."""
        self._batches.restart()

    def synchronize(self) -> None:
        """Wait until the device has done everything."""
        with self._limits.stage(TRAINING):
            self._training.synchronize()

    def _next(self) -> Any:
        with self._limits.stage(LOADING):
            batch = next(self._batches)
        if self.epoch_length is None and self._training.epochs:
            self.epoch_length = self._taken
        self._taken += 1
        return batch
