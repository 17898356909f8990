"""A tensor is taken over from a loader's worker whole, or not begun: else the worker complains."""

import threading
import time
from multiprocessing import resource_sharer
from typing import Any

import pytest

from workbench.workload.async_exceptions import Sent, Stages
from workbench.workload.taking_over import whole_take_over


class Stopped(Sent):
    """What another thread raises."""


def test_what_breaks_off_a_batch_waits_until_its_descriptor_is_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The greeting takes 0.2 s, the exception comes in the middle, and both ends are seen."""
    events: list[str] = []
    greeting, stages = threading.Event(), Stages(Stopped)

    def detach(_: Any) -> int:
        greeting.set()
        for _turn in range(20):
            time.sleep(0.01)
        events.append("taken over")
        return 7

    monkeypatch.setattr(resource_sharer.DupFd, "detach", detach)

    def take() -> None:
        stages.bind()
        try:
            with stages.stage("waiting for a batch"), whole_take_over():
                descriptor: Any = object.__new__(resource_sharer.DupFd)
                assert descriptor.detach() == 7
                while True:
                    time.sleep(0.01)
        except Stopped:
            events.append("broken off")

    thread = threading.Thread(target=take)
    thread.start()
    assert greeting.wait(60)
    until = time.monotonic() + 60
    while thread.is_alive() and time.monotonic() < until:
        stages.send()
        thread.join(0.02)
    assert events == ["taken over", "broken off"]
    assert resource_sharer.DupFd.detach is detach
