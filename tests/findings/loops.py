"""Writes training loops by hand and opens them the way a user does: trace, Run, findings.

Times are microseconds. Every step of a loop is the same unless it says otherwise, and the first
kernel of a step is always launched before the device gets idle, so that the clocks agree.
"""

from collections.abc import Callable
from pathlib import Path

import workbench as wb
from tests.kineto import Kineto
from workbench.findings import Finding
from workbench.run.run import Run

STEPS = 22
"""Enough step times (one fewer) for a critical verdict."""


class Loop:
    """A loop with one device; correlations are given out by ``launch``."""

    def __init__(self, *, gpu: bool = True) -> None:
        self.trace = Kineto(gpu=gpu)
        self._correlation = 0

    def launch(
        self, name: str, *, call: tuple[float, float], kernel: tuple[float, float], tid: int = 100
    ) -> None:
        """A kernel and its launch call, both as (start, duration)."""
        self._correlation += 1
        self.trace.launched(name, call=call, kernel=kernel, correlation=self._correlation, tid=tid)

    def copy(self, name: str, *, call: tuple[float, float], copied: tuple[float, float]) -> None:
        """A copy and its call."""
        self._correlation += 1
        self.trace.runtime("cudaMemcpyAsync", *call, correlation=self._correlation)
        self.trace.kernel(name, *copied, correlation=self._correlation, cat="gpu_memcpy")

    def run(self, folder: Path) -> Run:
        """Open it as a Run over a trace from elsewhere."""
        return wb.open(self.trace.write(folder / "loop.json"))


def looped(
    body: Callable[[Loop, float], None], length: float, *, steps: int = STEPS, gpu: bool = True
) -> Loop:
    """Steps of the same length, each filled by ``body`` from its start on."""
    loop = Loop(gpu=gpu)
    for number in range(steps):
        loop.trace.step(number, number * length, length)
        body(loop, number * length)
    return loop


def of(run: Run, code: str) -> Finding | None:
    """The finding of this code, if the Run has it."""
    return next((finding for finding in run.findings if finding.code == code), None)


def fired(run: Run, code: str) -> Finding:
    found = of(run, code)
    assert found is not None, f"{code} is silent; there are {[f.code for f in run.findings]}"
    return found
