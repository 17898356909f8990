"""Reading, listing and deleting Run folders."""

from pathlib import Path

import pytest

from tests.store.records import record
from workbench.errors import RunError
from workbench.store.folder import delete_run, list_runs, read_record
from workbench.store.record import RunRecord
from workbench.store.writing import new_run_folder


def write(parent: Path, made: RunRecord) -> Path:
    with new_run_folder(parent, made.name) as new:
        new.record = made
    assert new.folder is not None
    return new.folder


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    made = record(notes=["weights were restored"], labels={"a_b": 'a"b'})
    assert read_record(write(tmp_path, made)) == made


def test_values_that_json_does_not_know_are_written_as_text(tmp_path: Path) -> None:
    folder = write(tmp_path, record(effective={"place": Path("data")}))
    assert read_record(folder).effective == {"place": "data"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"schema": "workbench.run/1", "name": "x"', "damaged"),
        ('{"schema": "workbench.run/1", "name": "x"}', "damaged"),
        ('{"schema": "workbench.run/9"}', "workbench.run/9"),
        ("[1, 2]", "damaged"),
        ("\udcff", "damaged"),
    ],
)
def test_a_bad_record_is_one_clear_error(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "run.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RunError, match=says):
        read_record(tmp_path)


def test_a_folder_that_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not a Run folder"):
        read_record(tmp_path)


def test_runs_are_listed_newest_last_whatever_their_time_zone(tmp_path: Path) -> None:
    """11:30+02:00 is 09:30 UTC, which is before 10:00 UTC."""
    write(tmp_path, record(name="later", created="2026-12-02T10:00:00.000+00:00"))
    write(tmp_path, record(name="earlier", created="2026-12-02T11:30:00.000+02:00"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.json").write_text("{")
    assert [entry.name for entry in list_runs(tmp_path)] == ["earlier", "later"]


def test_an_entry_tells_the_median_step_without_the_warm_up(tmp_path: Path) -> None:
    """Of 90, 10, 12, 14 the first is warm-up: the median of the rest is 12."""
    write(tmp_path, record())
    (entry,) = list_runs(tmp_path)
    assert entry.step_ns == 12
    assert entry.settings == {"workers": 2}
    assert entry.size_bytes == (entry.folder / "run.json").stat().st_size


def test_a_run_without_timings_has_no_step_time(tmp_path: Path) -> None:
    write(tmp_path, record(timings=None))
    assert list_runs(tmp_path)[0].step_ns is None


def test_there_are_no_runs_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "runs") == []


def test_delete_removes_a_run_and_nothing_else(tmp_path: Path) -> None:
    kept, doomed = write(tmp_path, record(name="a")), write(tmp_path, record(name="b"))
    delete_run(doomed)
    assert [path.name for path in tmp_path.iterdir()] == [kept.name]


def test_delete_refuses_what_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "thesis.tex").write_text("years of work")
    (tmp_path / "project" / "run.json").write_text('{"scripts": {}}')
    with pytest.raises(RunError):
        delete_run(tmp_path / "project")
    assert (tmp_path / "project" / "thesis.tex").exists()


def test_delete_refuses_a_link(tmp_path: Path) -> None:
    target = write(tmp_path, record(name="a"))
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(RunError, match="link"):
        delete_run(tmp_path / "link")
    assert target.exists()
