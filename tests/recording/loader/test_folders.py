"""Folders that killed processes have left are swept; those of living ones stay."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.recording.loader.folders import make_folder, namespace, started, sweep

MAKES_ONE_AND_WAITS = (
    "import sys\n"
    "from workbench.recording.loader.folders import make_folder\n"
    "print(make_folder(), flush=True)\n"
    "sys.stdin.read()\n"
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary folders of this test, also in its child processes."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_the_folder_of_a_killed_process_goes_and_that_of_a_living_one_stays() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", MAKES_ONE_AND_WAITS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        (left / "switch").write_bytes(b"\1")
        assert sweep() == []
        assert left.exists()
        other.send_signal(signal.SIGKILL)
    mine = make_folder()  # it sweeps first
    assert not left.exists()
    assert mine.exists()
    mine.rmdir()


def test_a_number_that_was_given_to_a_later_process_is_not_its_owner(tmp_path: Path) -> None:
    began = started(os.getpid())
    assert began is not None
    earlier = tmp_path / f"workbench-loader-{namespace()}-{os.getpid()}-{began - 1}-abc"
    earlier.mkdir()
    assert sweep() == [earlier]


def test_names_of_another_form_or_container_and_links_are_left_alone(tmp_path: Path) -> None:
    others = [tmp_path / "workbench-loader-abcdefgh", tmp_path / "workbench-loader-0-999999999-1-a"]
    for other in others:
        other.mkdir()
    link = tmp_path / f"workbench-loader-{namespace()}-999999999-1-abc"
    link.symlink_to(others[0])
    assert sweep() == []
    assert all(other.exists() for other in others)
    assert link.is_symlink()
    link.unlink()
    for other in others:
        other.rmdir()
