"""Recording tests run in their own folder, on one thread, with nothing left behind."""

import gc
import multiprocessing
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch.autograd import profiler


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_thread: None) -> Iterator[Path]:
    """An empty current folder; afterwards no profiler, process or thread may be left.

    Python loses an exception of a signal handler that runs inside a callback of the collector, such
    as the one that hypothesis leaves there: the death of a worker is told by such a handler.
    """
    monkeypatch.chdir(tmp_path)
    others = gc.callbacks[:]
    gc.callbacks.clear()
    yield tmp_path
    assert not gc.callbacks
    gc.callbacks[:] = others
    assert not profiler._is_profiler_enabled
    assert multiprocessing.active_children() == []
    assert [t.name for t in threading.enumerate() if t.name.startswith("workbench")] == []
    assert list(tmp_path.rglob(".*.partial")) == []
