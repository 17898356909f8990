"""Comparisons of small loops."""

import multiprocessing
import threading
from collections.abc import Iterator

import pytest

from tests.tuning.planted import Clock
from workbench.tuning.delays import DelayProbe


@pytest.fixture(autouse=True)
def alone(one_thread: None) -> Iterator[None]:
    """Every test here computes on one thread, and leaves no process and no thread behind."""
    before = set(threading.enumerate())
    yield
    assert not multiprocessing.active_children()
    assert not set(threading.enumerate()) - before


@pytest.fixture
def planted_time(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    """Steps and waits for batches are measured by the planted clock."""
    for room in ("clock", "loop", "ceilings"):
        monkeypatch.setattr(f"workbench.recording.{room}.time", Clock)
    monkeypatch.setattr("workbench.tuning.block.DelayProbe", lambda **_: DelayProbe(on=False))
    return Clock
