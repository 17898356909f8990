"""``workbench doctor --workshop``: is this laptop ready, and what is missing if not."""

import subprocess
import sys
from pathlib import Path

import pytest

from workbench.cli import room_check
from workbench.cli.room_check import disk_row, lessons_row, python, room_rows, tried


def test_lessons_come_with_the_package() -> None:
    row = lessons_row()
    assert row.state == "ok"
    assert int(row.value.split()[0]) >= 3


@pytest.mark.parametrize(("free", "state"), [(1_999_999_999, "problem"), (2_000_000_000, "ok")])
def test_two_gigabytes_are_enough(
    free: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": free})
    monkeypatch.setattr(room_check.shutil, "disk_usage", lambda _: usage)
    assert disk_row(tmp_path).state == state


def test_without_packages_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_check, "PACKAGES", ("torch", "no_such_package"))
    rows = list(room_rows())
    assert [row.name for row in rows] == ["packages", "lessons", "disk"]
    assert rows[0].state == "problem"
    assert rows[0].value == "missing: no_such_package"


def test_what_fails_is_told_with_its_last_words_and_a_remedy(tmp_path: Path) -> None:
    row = tried("kernel", lambda: python("raise OSError('no room')", tmp_path, 60))
    assert row.state == "problem"
    assert row.value == "OSError: no room"
    assert row.remedy
    assert python("import time; time.sleep(60)", tmp_path, 0.5) == "no answer within 0 s"
    assert python("", tmp_path, 60) is None


@pytest.mark.slow
def test_a_machine_with_everything_is_ready_and_nothing_is_left(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "workbench", "doctor", "--workshop"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    for name in ("packages", "lessons", "kernel", "JupyterLab", "profile, offline"):
        assert f"✓ {name}" in " ".join(done.stdout.split()), done.stdout + done.stderr
    assert not list(tmp_path.iterdir())
