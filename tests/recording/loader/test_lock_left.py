"""Torch's word of a dead worker, raised by a signal handler, leaves no lock of a queue taken."""

import multiprocessing
import threading

import pytest
from torch.utils.data import DataLoader

from workbench.workload.shutdown import shut_down

pytestmark = pytest.mark.slow


def test_a_lock_that_was_left_taken_does_not_keep_an_iterator_from_ending() -> None:
    """As an error does that comes between taking the lock and the block that gives it back."""
    iterator = iter(DataLoader(range(100), 4, num_workers=1))
    next(iterator)
    (queue,) = iterator._index_queues  # type: ignore[attr-defined]
    queue._notempty.acquire()
    thread = threading.Thread(target=shut_down, args=(iterator,), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert multiprocessing.active_children() == []
