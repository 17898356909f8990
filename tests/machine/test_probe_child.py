"""The child that tries each dtype: it ends, whatever happens, and nonsense is survived."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from workbench.machine import dtypes, probing

pytestmark = pytest.mark.slow


READY = "import sys, time\nsay = lambda text: print(text, flush=True)\nsay('{\"device\": {}}')\n"


def script(folder: Path, code: str) -> Path:
    path = folder / "trial.py"
    path.write_text(READY + code)
    return path


def test_a_product_that_never_comes_back_is_ended_and_named(tmp_path: Path):
    """The child of this test ignores its own limit, as a hung driver would."""
    code = """say('{"dtype": "fp32", "supported": true, "matmul_ratio": 1.0}')
say('{"begins": "fp16"}')
time.sleep(120)
"""
    monkey = pytest.MonkeyPatch()
    monkey.setattr(probing, "START_LIMIT_S", 3.0)
    began = time.monotonic()
    try:
        found = probing.run_trial("cpu", 0.2, script=script(tmp_path, code))
    finally:
        monkey.undo()
    assert time.monotonic() - began < 60
    answers = dtypes._answers("cpu", found)
    told = {each.dtype: each for each in answers}
    slow = told["fp16"]
    assert slow.supported
    assert slow.matmul_ratio is None
    assert "did not end within 0.2 s" in (slow.reason or "")
    assert "not measured" in (told["bf16"].reason or "")
    assert told["fp32"].matmul_ratio == 1.0
    assert found["whole"] is False


def test_the_real_child_ends_itself(tmp_path: Path):
    """Its watchdog is C code: 0.01 s are over during the first product at the latest."""
    found = probing.run_trial("cpu", 0.01)
    assert found["device"] is not None
    assert not found["whole"]


def test_a_device_that_is_not_there_is_a_reason_and_no_error():
    answers = dtypes._answers("cuda:0", probing.run_trial("meta:99", 1.0))
    assert all(not each.supported for each in answers)
    assert all(each.reason for each in answers)


def test_a_child_that_writes_nonsense_is_survived(tmp_path: Path):
    found = probing.run_trial("cpu", 1.0, script=script(tmp_path, "say('{]'); say('hello')"))
    assert found["dtypes"] == {}
    assert not found["whole"]


def test_a_python_that_cannot_be_started_is_a_reason(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert "no process could be started" in probing.run_trial("cpu", 1.0)["reason"]


def test_the_child_imports_nothing_of_the_notebook(tmp_path: Path):
    """A notebook's folder with modules that carry the names of the standard library's."""
    for name in ("json", "torch", "statistics"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the notebook was imported')\n")
    main = tmp_path / "main.py"
    main.write_text(
        "import sys; sys.path.pop(0)\n"
        "from workbench.machine.probing import run_trial\n"
        "print('started')\n"
        "found = run_trial('cpu', 1.0)\n"
        "print(found['device'] is not None)\n"
    )
    done = subprocess.run(
        [sys.executable, str(main)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert done.stdout.split() == ["started", "True"]


def test_an_interrupt_takes_the_child_with_it(tmp_path: Path):
    """Ctrl-C while it waits: the child of this test would go on for a minute."""
    place = tmp_path / "pid"
    code = f"import os; open({str(place)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    done = threading.Event()

    def interrupt() -> None:
        while not (place.exists() and place.read_text()) and not done.wait(0.05):
            pass
        if not done.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def handler(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            probing.run_trial("cpu", 1.0, script=script(tmp_path, code))
    finally:
        done.set()
        watcher.join()
        signal.signal(signal.SIGINT, before)
    assert not psutil.pid_exists(int(place.read_text()))
