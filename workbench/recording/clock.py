"""When steps are complete, without waiting for the device inside the loop."""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol


class StepClock(Protocol):
    """Marks the ends of steps; the times are read when nothing is measured any more."""

    def start(self) -> None:
        """Begin a block of consecutive steps."""

    def step(self) -> None:
        """The step's work has been handed to the machine."""

    def durations_ns(self) -> list[list[int]]:
        """Completion to completion of every step, block by block; waits for the device."""


class HostClock:
    """Steps whose work is done when the call returns, or that are waited for one by one.

    Args:
        wait: Waits until the work of a step is done, where it is not done by then.
    """

    def __init__(self, wait: Callable[[], None] | None = None) -> None:
        self._wait = wait
        self._blocks: list[list[int]] = []

    def start(self) -> None:
        """Begin a block of consecutive steps."""
        self._blocks.append([self._mark()])

    def step(self) -> None:
        """The step is complete."""
        self._blocks[-1].append(self._mark())

    def durations_ns(self) -> list[list[int]]:
        """Length of every step, block by block."""
        return [[b - a for a, b in pairwise(block)] for block in self._blocks]

    def _mark(self) -> int:
        if self._wait is not None:
            self._wait()
        return time.perf_counter_ns()


class DeviceClock:
    """Steps of a device: an event is queued behind each, so that the loop is not disturbed."""

    def __init__(self, device: Any) -> None:
        import torch

        self._module = torch.get_device_module(device)
        self._device = device
        self._blocks: list[list[Any]] = []

    def start(self) -> None:
        """Begin a block of consecutive steps."""
        self._blocks.append([self._mark()])

    def step(self) -> None:
        """Queue the end of a step."""
        self._blocks[-1].append(self._mark())

    def durations_ns(self) -> list[list[int]]:
        """Completion to completion of every step, block by block."""
        self._module.synchronize(self._device)
        return [
            [round(a.elapsed_time(b) * 1e6) for a, b in pairwise(block)] for block in self._blocks
        ]

    def _mark(self) -> Any:
        event = self._module.Event(enable_timing=True)
        event.record(self._module.current_stream(self._device))
        return event


def step_clock(device: Any) -> StepClock:
    """The clock for work on ``device`` (a ``torch.device``, or ``None`` for the host)."""
    import torch

    if device is None or device.type == "cpu":
        return HostClock()
    module = torch.get_device_module(device)
    if hasattr(module, "Event") and hasattr(module, "current_stream"):
        return DeviceClock(device)
    return HostClock(wait=module.synchronize)
