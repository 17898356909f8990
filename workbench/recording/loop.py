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

LOSSES_KEPT = 1000
"""First steps whose losses stay with the Run."""


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
        self._history: list[Any] = []
        self._in_order = True
        """Whether every batch so far was trained once, one after the other."""
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
        self._keep(self.serve(held))
        return ended - began

    def draw(self) -> Any:
        """A batch without a step; the probes are not told that anybody waited for it."""
        self._in_order = False
        return self._next()

    def history(self) -> list[float | None] | None:
        """The losses of the first steps, one batch after the other; ``None``: steps give none."""
        told = [None if loss is None else float(loss) for loss in self._history]
        return told if any(loss is not None for loss in told) else None

    def _keep(self, loss: Any) -> None:
        if self._in_order and len(self._history) < LOSSES_KEPT:
            self._history.append(loss)

    def serve(self, held: list[Any]) -> Any:
        """One step on the first of these batches, which is taken out of the list.

        Returns:
            Its loss, one number on its device; ``None`` where the step gives none.
        """
        batch = held.pop(0)
        self.starts.mark()
        try:
            with self._limits.stage(TRAINING):
                loss = self._training.step(batch)
                if loss is not None and loss.numel() != 1:  # what else a step returns may be large
                    loss = None
                if self.losses is not None:
                    self.losses.append(loss)
        finally:
            del batch
        self.steps += 1
        self.progress.advance()
        return loss

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
