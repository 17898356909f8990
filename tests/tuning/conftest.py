"""Comparisons of small loops."""

import multiprocessing
import threading
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def alone(one_thread: None) -> Iterator[None]:
    """Every test here computes on one thread, and leaves no process and no thread behind."""
    before = set(threading.enumerate())
    yield
    assert not multiprocessing.active_children()
    assert not set(threading.enumerate()) - before
