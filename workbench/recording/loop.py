"""Drive a prepared workload step by step, and measure how long each step waits for its batch."""

import time
from typing import TYPE_CHECKING

from workbench.recording.limits import LOADING, TRAINING, Limits
from workbench.recording.loader.probe import LoaderProbe
from workbench.recording.progress import Progress

if TYPE_CHECKING:
    from workbench.workload.training import Training


class Loop:
    """Takes batches and steps for as long as it is asked; epochs repeat."""

    def __init__(
        self, training: "Training", limits: Limits, progress: Progress, probe: LoaderProbe
    ) -> None:
        self.steps = 0
        self.progress = progress
        self.epoch_length: int | None = None
        """Batches in the first epoch that came to its end."""
        self._training = training
        self._batches = training.batches()
        self._batches.probe = probe
        self._probe = probe
        self._limits = limits

    def step(self) -> int:
        """One whole step; returns the nanoseconds that it waited for its batch."""
        self._probe.step = self.steps
        began = time.monotonic_ns()
        with self._limits.stage(LOADING):
            batch = next(self._batches)
        ended = time.monotonic_ns()
        self._probe.waited(began, ended)
        if self.epoch_length is None and self._training.epochs:
            self.epoch_length = self.steps
        try:
            with self._limits.stage(TRAINING):
                self._training.step(batch)
        finally:
            del batch  # a traceback of a failing step must not keep it
        self.steps += 1
        self.progress.advance()
        return ended - began

    def synchronize(self) -> None:
        """Wait until the device has done everything."""
        with self._limits.stage(TRAINING):
            self._training.synchronize()
