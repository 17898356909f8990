"""What every test of a session leaves as it was."""

import threading
from collections.abc import Iterator
from multiprocessing import active_children

import pytest


@pytest.fixture
def nothing_left(one_thread: None) -> Iterator[None]:
    """Every test ends with the threads and processes that it began with."""
    threads, children = set(threading.enumerate()), set(active_children())
    yield
    assert set(threading.enumerate()) - threads == set()
    assert set(active_children()) - children == set()
