"""Times on a device: events are read when they have passed, never waited for in the loop."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from workbench.recording.telemetry import Telemetry
from workbench.recording.telemetry_meter import DeviceMeter, StepFacts


class Device:
    """A device whose clock the test sets, and whose work is done when the test says so."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.done = False
        outer = self

        class Event:
            def __init__(self, **_: Any) -> None:
                self.at = 0.0

            def record(self, _stream: object) -> None:
                self.at = outer.now_ms

            def query(self) -> bool:
                return outer.done

            def synchronize(self) -> None:
                outer.done = True

            def elapsed_time(self, other: "Event") -> float:
                return other.at - self.at

        self.Event: Callable[..., Event] = Event

    def current_stream(self, _device: object) -> None:
        return None


def test_phases_of_a_step_come_from_the_devices_own_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Forward 3 ms, backward 5 ms, optimizer 1 ms of a step of 10 ms: 1 ms is left."""
    device, telemetry = Device(), Telemetry()
    monkeypatch.setattr(torch, "get_device_module", lambda _: device)
    meter = DeviceMeter(telemetry, torch.device("cuda", 0))
    meter.begin_input()
    meter.end_input()
    for phase, ms in (("forward", 3.0), ("backward", 5.0), ("optimizer", 1.0)):
        meter.begin(phase)
        device.now_ms += ms
        meter.end(phase)
    device.now_ms += 1.0
    facts = StepFacts(step=0, epoch=0, change=0, profiled=False, samples=8)
    meter.end_step(facts, None)
    assert telemetry.steps == 0  # the device has not done it yet, and nobody waits
    device.done = True
    meter.collect()
    known = telemetry.columns()
    assert known["step_ns"].tolist() == [10e6]
    assert known["forward_ns"].tolist() == [3e6]
    assert known["backward_ns"].tolist() == [5e6]
    assert known["optimizer_ns"].tolist() == [1e6]
    assert known["other_ns"][0] == pytest.approx(1e6 - known["input_ns"][0])
    assert math.isnan(known["loss"][0])
