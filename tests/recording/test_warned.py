"""The user's warnings are collected, and shown as they would have been."""

import warnings
from pathlib import Path

import pytest

from workbench.recording.warned import WarningLog, without_places


def test_a_warning_is_collected_once_and_still_shown() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with WarningLog() as log:
            for _ in range(2):
                warnings.warn("too slow", UserWarning, stacklevel=1)
    assert log.found == ["UserWarning: too slow"]
    assert [str(warning.message) for warning in shown] == ["too slow", "too slow"]


def test_the_filters_stay_the_users() -> None:
    with warnings.catch_warnings(), WarningLog() as log:
        warnings.simplefilter("ignore")
        warnings.warn("hidden", UserWarning, stacklevel=1)
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            warnings.warn("raised", UserWarning, stacklevel=1)
    assert log.found == []


def test_the_way_to_show_warnings_is_put_back() -> None:
    before = warnings.showwarning
    with WarningLog():
        assert warnings.showwarning != before
    assert warnings.showwarning is before


def test_a_warning_is_collected_where_there_is_no_folder_and_no_home(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A current folder may be deleted, and a container's user need not have a home."""

    def gone(*_: object) -> Path:
        raise FileNotFoundError

    def homeless(*_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "cwd", gone)
    monkeypatch.setattr(Path, "home", homeless)
    assert without_places("cannot read /data/x.jpg") == "cannot read /data/x.jpg"


def test_places_of_this_user_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    monkeypatch.chdir(tmp_path)
    text = f"cannot read /home/alice/data/x.jpg, see {tmp_path}/log"
    assert without_places(text) == "cannot read ~/data/x.jpg, see ./log"
