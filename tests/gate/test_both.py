"""Two revisions measured in turns, and nothing left of it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from workbench.errors import GateError
from workbench.gate.both import measure_both
from workbench.gate.worktrees import worktrees

pytestmark = pytest.mark.slow

TRAIN = """
import time
import torch
import workbench as wb
from delay import SECONDS

print("a print is no answer")

def step(model, batch):
    time.sleep(SECONDS)
    return model(batch).sum()

def workload():
    torch.set_num_threads(1)
    data = [torch.ones(2, 4) for _ in range(8)]
    return wb.Workload(torch.nn.Linear(4, 4), data, step=step)

def broken():
    raise ValueError("no data here")
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A loop that sleeps for 20 ms a step, and one commit later for 40."""
    place = tmp_path / "project"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "t")
        monkeypatch.setenv(f"{name}_EMAIL", "t@example.org")
    git("init", "-q", "-b", "main")
    (place / "train.py").write_text(TRAIN)
    (place / "delay.py").write_text("SECONDS = 0.02\n")
    commit("fast", "fast")
    (place / "delay.py").write_text("SECONDS = 0.04\n")
    (place / "requirements.txt").write_text("torch==9\n")
    commit("slow", "slow")
    (place / "delay.py").write_text("SECONDS = 9\n")
    return place


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def commit(message: str, tag: str) -> None:
    git("add", ".")
    git("commit", "-q", "-m", message)
    git("tag", tag)


def left(repository: Path) -> list[str]:
    """What is in the temporary folder, the repository apart, and other work trees."""
    listed = git("-C", str(repository), "worktree", "list", "--porcelain").count("worktree ")
    ours = [p.name for p in repository.parent.iterdir() if p.name.startswith("workbench")]
    return ours + ["tree"] * (listed - 1)


def test_a_slower_revision_fails_and_the_working_tree_is_untouched(repository: Path):
    before = git("status", "--porcelain=v2", "--branch")
    found = measure_both("fast", "slow", workload="train:workload", steps=3, blocks=4)
    step = next(each for each in found.judged if each.metric.name == "step_time")
    # 20 ms of sleep became 40: nobody else's load makes a step shorter than its sleep.
    assert step.base is not None
    assert step.head is not None
    assert found.interleaved
    assert step.base >= 0.9 * 20e6
    assert step.head >= 0.9 * 40e6
    assert step.change is not None
    assert step.change > 0.2
    operators = next(each for each in found.judged if each.metric.name == "operators_per_step")
    assert operators.verdict == "pass"
    notes = " ".join(found.notes)
    assert "requirements.txt" in notes
    assert "not committed" in notes
    assert json.dumps(found.to_json())
    assert git("status", "--porcelain=v2", "--branch") == before
    assert left(repository) == []


@pytest.mark.parametrize(
    ("workload", "match"),
    [
        ("train:broken", "fast cannot be measured: ValueError: no data here"),
        ("train:nothing", "AttributeError"),
        ("json:loads", "not loaded from the revision"),
    ],
)
def test_what_cannot_be_measured_says_why_and_leaves_nothing(
    repository: Path, workload: str, match: str
):
    with pytest.raises(GateError, match=match):
        measure_both("fast", "slow", workload=workload)
    assert left(repository) == []


def test_a_time_limit_ends_it_and_leaves_nothing(repository: Path):
    with pytest.raises(GateError, match="time limit"):
        measure_both("fast", "slow", workload="train:workload", time_limit_s=0.5)
    assert left(repository) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_folder_and_no_process(repository: Path, number: signal.Signals):
    command = [sys.executable, "-m", "workbench", "gate", "--measure-both", "fast", "slow"]
    command += ["--workload", "train:workload"]
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": root}, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "warming up" in line:
                break
        time.sleep(0.3)
        family = psutil.Process(process.pid).children(recursive=True)
        assert family
        process.send_signal(number)
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == []
    assert process.returncode not in (0, 1)
    assert left(repository) == []


def test_no_revision_and_no_repository_say_what_to_give(repository: Path, tmp_path: Path):
    for wrong in ("nowhere", "--all"):
        with pytest.raises(GateError, match=r"is no revision"), worktrees("fast", wrong):
            raise AssertionError
    with pytest.raises(GateError, match="rev-parse failed"), worktrees("a", "b", at=tmp_path):
        raise AssertionError
    assert left(repository) == []


def test_no_hook_runs(repository: Path):
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch ../hooked\n")
    hook.chmod(0o755)
    with worktrees("fast", "slow") as found:
        assert (found.tops[0] / "delay.py").read_text() == "SECONDS = 0.02\n"
        assert (found.tops[1] / "delay.py").read_text() == "SECONDS = 0.04\n"
    assert not list(repository.parent.rglob("hooked"))
