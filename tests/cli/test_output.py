"""Where the words go may lack characters or room: that is no fault, and never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run.test_open import gpu_trace

pytestmark = pytest.mark.slow


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return gpu_trace().write(tmp_path / "t.json.gz")


def run(code: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", code + "from workbench.cli import main; main()"]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, env=env, timeout=120, check=False)


def test_an_encoding_without_our_signs_shows_question_marks(trace: Path) -> None:
    """A pipe on Windows often takes cp1252 only, and a bare container ASCII."""
    arguments = f"import sys; sys.argv = ['workbench', 'analyze', {str(trace)!r}]\n"
    done = run(arguments, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?" in done.stdout
    done.stdout.decode("ascii")


@pytest.mark.parametrize("verb", ["report", "convert"])
def test_a_path_that_the_system_refuses_is_one_line(trace: Path, verb: str) -> None:
    """No file system takes a name of 5000 characters."""
    given = ["x" * 5000] if verb == "report" else [str(trace), "x" * 5000 + ".json"]
    done = run(f"import sys; sys.argv = {['workbench', verb, *given]!r}\n")
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert "File name too long" in line
    assert len(line) < 200


def test_a_full_disk_is_one_line(trace: Path) -> None:
    full = (
        "import errno, sys, workbench.run.source as source\n"
        "def full(*_, **__): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        f"source.open_run = full; sys.argv = ['workbench', 'compare', {str(trace)!r}, 'b']\n"
    )
    done = run(full)
    assert done.returncode == 2
    assert done.stderr == b"workbench: the disk is full: free some space.\n"


def test_the_package_starts_as_a_module_too() -> None:
    """Where no script is on the path: the same commands, named after no file of ours."""
    command = [sys.executable, "-m", "workbench", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: python -m workbench " in done.stdout
    assert "analyze" in done.stdout
