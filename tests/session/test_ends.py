"""However a process with a session ends, nothing of it stays: a script in a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import os, sys, threading, time
from multiprocessing import active_children
import torch
from tests.session.loops import Remembered
from workbench.session import Session
torch.set_num_threads(1)
loop = Remembered(workers=2)
before = loop.model.head.weight.detach().clone()
for _ in range(2):
    try:
        with Session(loop.work, folder=sys.argv[1]) as session:
            session.start()
            session.wait(3, 60)
            print("running", flush=True)
            while True:
                time.sleep(0.01)
    except KeyboardInterrupt:
        threads = [t.name for t in threading.enumerate() if "workbench" in t.name]
        same = torch.equal(before, loop.model.head.weight)
        print("interrupted", same, threads, active_children(), flush=True)
again = Session(loop.work, folder=sys.argv[1])
again.start()
again.wait(3, 60)
print("left running", flush=True)
"""


def test_interrupts_and_the_end_of_the_interpreter_leave_nothing_behind(tmp_path: Path) -> None:
    """First the process alone is interrupted, then, as by a terminal, its workers with it."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )
    assert process.stdout is not None
    children: set[psutil.Process] = set()
    for interrupt in (process.send_signal, lambda number: os.killpg(process.pid, number)):
        assert process.stdout.readline() == "running\n"
        children |= set(psutil.Process(process.pid).children(recursive=True))
        interrupt(signal.SIGINT)
        assert process.stdout.readline() == "interrupted True [] []\n"
    assert process.stdout.readline() == "left running\n"
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert len(children) == 4
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
