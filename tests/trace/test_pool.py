"""Ranks read by several processes: the same columns, and no process that stays."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.kineto import Kineto
from tests.trace.tables import assert_same
from workbench import trace
from workbench.errors import SettingError
from workbench.trace import cache


@pytest.fixture
def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Three traces that are large enough for a cache each, and a file that is no trace."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "caches"))
    folder = tmp_path / "ranks"
    folder.mkdir()
    paths = []
    for rank in range(3):
        made = Kineto(gpu=True)
        for at in range(1500):
            made.launched(
                f"k{rank}", call=(20 * at, 5), kernel=(20 * at + 8, 9), correlation=at + 1
            )
        paths.append(made.write(folder / f"rank{rank}.json"))
    (folder / "broken.json").write_text("{")
    return [*paths, folder / "broken.json"]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 9])
def test_columns_come_out_of_the_caches_that_workers_made(
    ranks: list[Path], workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [trace.read(path) for path in ranks[:3]]
    before = psutil.Process().children(recursive=True)
    trace.read_into_caches(ranks, workers=workers)
    monkeypatch.setattr(cache, "read", None)  # reading again would fail
    for path, read in zip(ranks[:3], expected, strict=True):
        assert_same(trace.open_trace(path), read)
    left = psutil.Process().children(recursive=True)
    assert [process for process in left if process not in before] == []


@pytest.mark.parametrize("workers", [0, -1])
def test_no_worker_is_refused(ranks: list[Path], workers: int) -> None:
    with pytest.raises(SettingError, match="at least 1"):
        trace.read_into_caches(ranks, workers=workers)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_the_caller_ends_no_process_and_no_half_cache_stays(
    ranks: list[Path], tmp_path: Path, how: signal.Signals
) -> None:
    """The traces are FIFOs that nobody writes to: workers would wait for ever."""
    waiting = [tmp_path / f"rank{i}.json" for i in range(2)]
    for path in waiting:
        os.mkfifo(path)
    program = (
        "import sys; from workbench.trace import read_into_caches\n"
        "read_into_caches(sys.argv[1:], workers=2)"
    )
    arguments = [sys.executable, "-c", program, *map(str, waiting)]
    with subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as caller:
        children: list[psutil.Process] = []
        while len(children) < 2:
            time.sleep(0.05)
            children = psutil.Process(caller.pid).children()
        time.sleep(1.0)  # long enough to have begun to read
        caller.send_signal(how)
        caller.wait(20)
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    caches = tmp_path / "caches" / "traces"
    assert not caches.exists() or list(caches.iterdir()) == []
