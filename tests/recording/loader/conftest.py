"""Loader tests leave no process, no side file and no probe behind."""

import multiprocessing
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from multiprocessing import queues, util
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest
from torch.utils.data import _DatasetKind


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    util.get_temp_dir()  # made once per process, and not in a folder that goes with this test
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    create, pickler = _DatasetKind.__dict__["create_fetcher"], queues._ForkingPickler  # type: ignore[attr-defined]
    assert pickler is ForkingPickler
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield
    assert _DatasetKind.__dict__["create_fetcher"] is create
    assert queues._ForkingPickler is ForkingPickler  # type: ignore[attr-defined]
    assert sys.getprofile() is None
    assert multiprocessing.active_children() == []
    assert [t.name for t in threading.enumerate() if t.name.startswith("workbench")] == []
    assert list(tmp_path.glob("workbench-loader-*")) == []
