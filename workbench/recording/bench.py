"""The measured parts of a profile: warm-up, blocks without the profiler, the profiled window."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.recording.clock import HostClock, step_clock
from workbench.recording.garbage import GarbageProbe
from workbench.recording.loop import Loop
from workbench.recording.window import Window

WARMUP_LEAST = 5
WARMUP_MOST = 50
WARMUP_MOST_S = 20.0
"""Warm-up that goes on so long after the first step ends, whatever the change test says."""
STEADY = 3
"""The last steps of warm-up, by which the others are planned."""


def alone(value: Any) -> Any:
    """What one decides that has no ranks beside it."""
    return value


@dataclass(frozen=True, kw_only=True)
class Block:
    """Step times and the waits for input inside them, in nanoseconds."""

    step_ns: list[int]
    input_ns: list[int]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Measures parts of one loop, on the device that it runs on.

    A pause lets workers fill their queue and the device run empty. ``lead`` steps that nobody
    counts bring both back to the steady state; they come before every part but warm-up.
    """

    loop: Loop
    device: Any
    garbage: GarbageProbe
    lead: int
    agree: Callable[[Any], Any] = alone
    """Among ranks, the first one's answer for all: what follows from times must not differ."""

    def warm_up(self) -> Block:
        """Steps until the change test finds a steady end; each step is waited for.

        The test leaves out half of a series at most, so more than half must be steady.
        """
        from workbench.statistics.warmup import warmup_length

        clock, waits, times = HostClock(self.loop.synchronize), list[int](), list[int]()
        clock.start()
        while len(times) < WARMUP_MOST:
            waits.append(self.loop.step())
            clock.step()
            (times,) = clock.durations_ns()
            steady = warmup_length(times) < len(times) // 2
            done = len(times) >= WARMUP_LEAST and (steady or sum(times[1:]) > WARMUP_MOST_S * 1e9)
            if self.agree(done):
                break
        return Block(step_ns=times, input_ns=waits)

    def block(self, count: int) -> Block:
        """``count`` steps without the profiler."""
        for _ in range(self.lead):
            self.loop.step()
        clock, waits = step_clock(self.device), list[int]()
        self.garbage.counting = True
        clock.start()
        for _ in range(count):
            waits.append(self.loop.step())
            clock.step()
        self.garbage.counting = False
        (times,) = clock.durations_ns()
        return Block(step_ns=times, input_ns=waits)

    def pilot(self, window: Window) -> int | None:
        """Profile one step; its trace's size in bytes, or ``None`` when ours had to give way."""
        window.prepare()
        window.start()
        try:
            window.begin_step(self.loop.steps)
            self.loop.step()
            self.loop.synchronize()
            window.end_step()
        finally:
            window.stop()
        return None if window.gave_way else window.measure()

    def profile(self, window: Window, count: int) -> list[int]:
        """``count`` marked steps under the profiler; returns their times."""
        window.prepare()
        clock = step_clock(self.device)
        try:
            for _ in range(self.lead):
                self.loop.step()
            self.loop.synchronize()  # so that no work of an earlier step falls into the window
            window.start()
            self.garbage.marking = True
            clock.start()
            for _ in range(count):
                window.begin_step(self.loop.steps)
                self.loop.step()
                window.end_step()
                clock.step()
        finally:
            self.garbage.marking = False
            window.stop()
        (times,) = clock.durations_ns()
        return times
