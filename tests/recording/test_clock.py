"""Step times are differences between marks of one block, never across blocks."""

import itertools
from types import SimpleNamespace

import pytest
import torch

from workbench.recording import clock as module
from workbench.recording.clock import DeviceClock, HostClock, step_clock


def test_a_pause_between_blocks_belongs_to_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks at 0, 5, 12 and, after a pause, at 100, 103."""
    marks = iter([0, 5, 12, 100, 103])
    monkeypatch.setattr(module.time, "perf_counter_ns", lambda: next(marks))
    clock = HostClock()
    clock.start()
    clock.step()
    clock.step()
    clock.start()
    clock.step()
    assert clock.durations_ns() == [[5, 7], [3]]


def test_the_host_clock_is_for_the_cpu() -> None:
    assert isinstance(step_clock(None), HostClock)
    assert isinstance(step_clock(torch.device("cpu")), HostClock)


def test_a_device_without_events_is_waited_for_at_every_mark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[int] = []
    plain = SimpleNamespace(synchronize=lambda: waits.append(1))
    monkeypatch.setattr(torch, "get_device_module", lambda device: plain)
    clock = step_clock(torch.device("mps"))
    clock.start()
    clock.step()
    assert len(waits) == 2


def test_a_device_is_timed_by_events_and_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The events are 1.5 ms apart on a device that is played here."""
    calls: list[str] = []
    times = itertools.count(0.0, 1.5)

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self, stream: str) -> None:
            calls.append("record")
            self.at_ms = next(times)

        def elapsed_time(self, later: "Event") -> float:
            return later.at_ms - self.at_ms

    class Module:
        @staticmethod
        def current_stream(device: torch.device) -> str:
            return "stream"

        @staticmethod
        def synchronize(device: torch.device) -> None:
            calls.append("synchronize")

    Module.Event = Event  # type: ignore[attr-defined]
    monkeypatch.setattr(torch, "get_device_module", lambda device: Module)
    clock = step_clock(torch.device("cuda"))
    assert isinstance(clock, DeviceClock)
    clock.start()
    clock.step()
    clock.step()
    assert clock.durations_ns() == [[1_500_000, 1_500_000]]
    assert calls == ["record", "record", "record", "synchronize"]
