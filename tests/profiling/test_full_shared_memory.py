"""A /dev/shm that is full for real ends in one error with its remedy, and in no process left.

Needs the right to mount (root): a child process gets a /dev/shm of 8 MB for itself.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house.files import ROOT

pytestmark = pytest.mark.soak

SMALL = 'mount -t tmpfs -o size=8m tmpfs /dev/shm && exec "$@"'


def filled(how: str, at: int, folder: Path) -> dict[str, Any]:
    program = [sys.executable, "-m", "tests.profiling.filling", how, str(at), str(folder)]
    inside = ["unshare", "--mount", "sh", "-c", SMALL, "sh", *program]
    done = subprocess.run(
        inside, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("at", [0, 60])
def test_a_profile_names_the_remedy(at: int, tmp_path: Path) -> None:
    found = filled("profile", at, tmp_path)
    kind, text, *_ = found["error"]
    assert kind == "WorkloadError"
    assert "no shared memory left" in text
    assert "/dev/shm (8.39 MB" in text
    assert "--shm-size=8g" in text
    assert found["left"] == []


@pytest.mark.parametrize("at", [0, 60])
def test_a_capture_keeps_what_it_has(at: int, tmp_path: Path) -> None:
    """The sixteenth batch is the first large one; the window ended with the fifth."""
    found = filled("capture", at, tmp_path)
    kind, *rest = found["error"]
    assert kind == "RuntimeError"  # torch's own
    assert "--shm-size=8g" in rest[-1]
    assert found["steps"] == 3 if at else "--shm-size=8g" in found["steps"]
    assert found["left"] == []
