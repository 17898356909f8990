"""However a process with a session ends, nothing of it stays: scripts in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow


HEAD = """
import sys, threading, time
from multiprocessing import active_children
import torch
from tests.session.loops import Remembered
from workbench.session import Session
torch.set_num_threads(1)
"""
BLOCK = """
def main():
    loop = Remembered(workers=2)
    before = loop.model.head.weight.detach().clone()
    try:
        with Session(loop.work, folder=sys.argv[1]) as session:
            session.start()
            session.wait(3, 60)
            print("running", flush=True)
            while True:
                time.sleep(0.01)
    except KeyboardInterrupt:
        print("interrupted", torch.equal(before, loop.model.head.weight), flush=True)
    threads = [t.name for t in threading.enumerate() if "workbench" in t.name]
    print(threads, active_children(), flush=True)
    again = Session(loop.work, folder=sys.argv[1])
    again.start()
    print(again.wait(2, 60), flush=True)
    again.stop()

main()
"""
LEFT_RUNNING = """
loop = Remembered(workers=2)
session = Session(loop.work, folder=sys.argv[1])
session.start()
session.wait(3, 60)
print("running", flush=True)
"""


def started(script: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + script, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


@pytest.mark.parametrize("whole_group", [False, True])
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, *, whole_group: bool) -> None:
    """A terminal and Jupyter interrupt the loader's workers, too."""
    process = started(BLOCK, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    time.sleep(0.1)
    if whole_group:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=90)
    assert out.splitlines() == ["interrupted True", "[] []", "True"], said
    assert process.returncode == 0


def test_the_end_of_the_interpreter_ends_the_workers(tmp_path: Path) -> None:
    process = started(LEFT_RUNNING, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    children = psutil.Process(process.pid).children(recursive=True)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []
