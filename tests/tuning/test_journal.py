"""The folder of a search: what was measured is on disk at once, and a bad disk loses no result."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from workbench.errors import RunError, SettingError
from workbench.tuning import journal as writing
from workbench.tuning.journal import EVENTS, HEADER, Journal, open_journal

ABOUT = {"title": "mine"}


def test_what_was_asked_is_answered_from_the_folder(tmp_path: Path) -> None:
    first = open_journal(tmp_path / "t", tmp_path, "t", ABOUT)
    first.add({"ratio": 0.5}, "trial", change={"workers": 2})
    again = open_journal(tmp_path / "t", tmp_path, "t", ABOUT)
    assert again.get("trial", change={"workers": 2}) == {"ratio": 0.5}
    assert again.get("trial", change={"workers": 1}) is None


def test_a_disk_that_becomes_full_loses_no_answer_and_leaves_no_part_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured is worth more than its file: the search goes on, and says so."""
    found = open_journal(tmp_path / "t", tmp_path, "t", ABOUT)
    write = Path.write_text

    def full(self: Path, *args: Any, **options: Any) -> int:
        write(self, "{")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    found.add({"ratio": 0.5}, "trial", change={"workers": 2})
    assert found.get("trial", change={"workers": 2}) == {"ratio": 0.5}
    assert found.lost == "No space left on device"
    assert list((tmp_path / "t" / EVENTS).iterdir()) == []


def test_a_folder_of_another_format_or_workload_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "t"
    open_journal(place, tmp_path, "t", ABOUT)
    with pytest.raises(SettingError, match="title was 'mine' and is 'other'"):
        open_journal(place, tmp_path, "t", {"title": "other"})
    header = json.loads((place / HEADER).read_text())
    (place / HEADER).write_text(json.dumps(header | {"schema": "workbench.tuning-folder/0"}))
    with pytest.raises(SettingError, match="format was 'workbench"):
        open_journal(place, tmp_path, "t", ABOUT)
    (place / HEADER).write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        open_journal(place, tmp_path, "t", ABOUT)


def test_two_searches_in_one_folder_are_an_error(tmp_path: Path) -> None:
    first, second = (open_journal(tmp_path / "t", tmp_path, "t", ABOUT) for _ in range(2))
    first.add({"ratio": 0.5}, "trial", change={"workers": 2})
    with pytest.raises(RunError, match="another tuning writes"):
        second.add({"ratio": 0.5}, "trial", change={"workers": 1})


def test_a_file_that_is_not_whole_is_measured_again(tmp_path: Path) -> None:
    found = open_journal(tmp_path / "t", tmp_path, "t", ABOUT)
    found.add({"ratio": 0.5}, "trial", change={"workers": 2})
    (path,) = (tmp_path / "t" / EVENTS).iterdir()
    path.write_text(path.read_text()[:20])
    assert Journal(tmp_path / "t").get("trial", change={"workers": 2}) is None
    assert writing._highest(tmp_path / "t") == 1, "its number stays taken"
