"""A Run is whole or absent, and nothing ever overwrites another one."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.records import record
from workbench.errors import RunError
from workbench.store.folder import list_runs, read_record
from workbench.store.writing import PARTIAL, check_writable, clean_stale, new_run_folder


def write(parent: Path, name: str, text: str = "trace") -> Path:
    with new_run_folder(parent, name) as new:
        (new.path / "rank0.trace.json.gz").write_text(text)
        new.record = record(traces=["rank0.trace.json.gz"])
    assert new.folder is not None
    return new.folder


def test_a_run_appears_only_when_its_block_ends(tmp_path: Path) -> None:
    with new_run_folder(tmp_path / "runs", "mine") as new:
        new.record = record()
        assert not (tmp_path / "runs" / "mine").exists()
        assert list_runs(tmp_path / "runs") == []
    assert new.folder == tmp_path / "runs" / "mine"
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["mine"]


def test_a_taken_name_gets_a_number_and_the_first_run_keeps_its_bytes(tmp_path: Path) -> None:
    first = write(tmp_path, "mine", "first")
    second, third = write(tmp_path, "mine", "second"), write(tmp_path, "mine", "third")
    assert [second.name, third.name] == ["mine-2", "mine-3"]
    assert (first / "rank0.trace.json.gz").read_text() == "first"
    assert read_record(third).name == "mine-3"


def test_a_name_taken_while_writing_is_not_overwritten(tmp_path: Path) -> None:
    with new_run_folder(tmp_path, "mine") as slow:
        slow.record = record()
        fast = write(tmp_path, "mine", "fast")
    assert slow.folder == tmp_path / "mine-2"
    assert (fast / "rank0.trace.json.gz").read_text() == "fast"


@pytest.mark.parametrize("thing", ["file", "empty folder", "dangling link"])
def test_anything_that_has_the_name_is_left_alone(tmp_path: Path, thing: str) -> None:
    there = tmp_path / "mine"
    if thing == "file":
        there.write_text("notes")
    elif thing == "empty folder":
        there.mkdir()
    else:
        there.symlink_to(tmp_path / "nowhere")
    before = os.lstat(there).st_ino
    assert write(tmp_path, "mine").name == "mine-2"
    assert os.lstat(there).st_ino == before


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_an_interrupted_write_leaves_nothing(tmp_path: Path, stop: type[BaseException]) -> None:
    def write_half() -> None:
        with new_run_folder(tmp_path, "mine") as new:
            (new.path / "rank0.trace.json.gz").write_text("half")
            raise stop

    with pytest.raises(stop):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_leaves_a_folder_that_a_later_write_removes(tmp_path: Path) -> None:
    """The process dies without cleaning up; its leftover is no Run, and goes when it is stale."""
    script = (
        "import os, sys; from workbench.store.writing import new_run_folder\n"
        "with new_run_folder(sys.argv[1], 'mine') as new:\n"
        "    (new.path / 'half').write_text('x'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".mine.")
    assert left.name.endswith(PARTIAL)
    assert list_runs(tmp_path) == []

    clean_stale(tmp_path)
    assert left.exists(), "a fresh one may belong to another machine that writes here"
    os.utime(left, (0, left.stat().st_mtime - 120))
    write(tmp_path, "other")
    assert not left.exists()


def test_a_folder_of_a_living_process_stays(tmp_path: Path) -> None:
    with new_run_folder(tmp_path, "slow") as slow:
        os.utime(slow.path, (0, slow.path.stat().st_mtime - 3600))
        write(tmp_path, "other")
        slow.record = record()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "slow"]


def test_a_full_disk_is_said_with_its_remedy(tmp_path: Path) -> None:
    with (
        pytest.raises(RunError, match="free some space, or give folder="),
        new_run_folder(tmp_path, "mine"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("not a folder")
    with pytest.raises(RunError, match="is not a folder"), new_run_folder(tmp_path / "runs", "a"):
        pass


def test_a_place_without_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(RunError, match="cannot be written"), new_run_folder(tmp_path, "mine"):
        pass


def test_a_place_that_cannot_exist_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    """No file system of Linux or macOS takes a name of 300 characters."""
    with pytest.raises(RunError, match=r"File name too long.*give folder="):
        check_writable(tmp_path / ("x" * 300) / "runs")


def test_a_current_folder_that_was_deleted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(RunError, match=r"current folder was deleted.*os\.chdir"):
        check_writable(tmp_path)


def test_a_run_without_a_record_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="without a record"), new_run_folder(tmp_path, "mine"):
        pass
    assert list(tmp_path.iterdir()) == []
