"""Recording tests run in their own folder, on one thread, with nothing left behind."""

import multiprocessing
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch.autograd import profiler


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_thread: None) -> Iterator[Path]:
    """An empty current folder; afterwards no profiler, process or thread may be left."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not profiler._is_profiler_enabled
    assert multiprocessing.active_children() == []
    assert [t.name for t in threading.enumerate() if t.name.startswith("workbench")] == []
    assert list(tmp_path.rglob(".*.partial")) == []
