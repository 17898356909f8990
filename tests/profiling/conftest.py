"""Recording tests run in their own folder, on one thread, with nothing left behind."""

import multiprocessing
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.autograd import profiler


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder; afterwards no profiler, process or thread may be left."""
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield tmp_path
    torch.set_num_threads(threads)
    assert not profiler._is_profiler_enabled
    assert multiprocessing.active_children() == []
    assert [t.name for t in threading.enumerate() if t.name.startswith("workbench")] == []
    assert list(tmp_path.rglob(".*.partial")) == []
