"""Is a set whole or absent, whatever happens while it is made?"""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from workbench.datasets import cache_folder
from workbench.datasets.cache import BEING_MADE, RECORD, Recipe, Source, is_whole, made
from workbench.errors import DatasetError

THREE = {"a.txt": "one", "deep/b.txt": "two", "deep/c.txt": "three"}


def recipe(times: list[int] | None = None, **changes: object) -> Recipe:
    """A set of three small files; ``times`` counts how often it was made."""

    def make(folder: Path) -> list[Source]:
        if times is not None:
            times.append(1)
        for name, content in THREE.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(content)
        return [Source(name="hand", sha256="0" * 64)]

    plain = {"name": "letters", "version": 1, "parameters": {"n": 3}, "versions": {"pen": "1.0"}}
    return Recipe(**{**plain, "make": make, **changes})  # type: ignore[arg-type]


def content(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and path.name != RECORD
    }


def test_a_set_is_made_once_and_found_again(cache: Path):
    times: list[int] = []
    first, second = made(recipe(times)), made(recipe(times))
    assert first == second
    assert first.parent == cache
    assert content(first) == THREE
    assert len(times) == 1


def test_the_record_holds_recipe_versions_sources_and_counts():
    record = json.loads((made(recipe()) / RECORD).read_text())
    assert record["schema"] == "workbench.dataset/1"
    assert record["recipe"] == 1
    assert record["parameters"] == {"n": 3}
    assert record["versions"]["pen"] == "1.0"
    assert record["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert record["sources"] == [{"name": "hand", "sha256": "0" * 64}]
    assert record["files"] == 3
    assert record["bytes"] == len("one" + "two" + "three")


@pytest.mark.parametrize(
    "changed", [{"version": 2}, {"parameters": {"n": 4}}, {"versions": {"pen": "1.1"}}]
)
def test_another_recipe_or_version_makes_another_set_and_leaves_the_old_one(changed: dict):
    old, new = made(recipe()), made(recipe(**changed))
    assert old != new
    assert is_whole(old)
    assert is_whole(new)


@pytest.mark.parametrize("damage", ["missing", "shorter", "added", "no record", "bad record"])
def test_a_damaged_set_is_made_again(damage: str):
    folder = made(recipe())
    match damage:
        case "missing":
            (folder / "a.txt").unlink()
        case "shorter":
            (folder / "deep/c.txt").write_text("thr")
        case "added":
            (folder / "deep/d.txt").write_text("four")
        case "no record":
            (folder / RECORD).unlink()
        case "bad record":
            (folder / RECORD).write_text('{"schema": ')
    assert content(made(recipe())) == THREE


def test_a_full_disk_is_said_and_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch):
    write = Path.write_text

    def full(self: Path, *rest: object, **named: object) -> int:
        if self.name == "c.txt":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(DatasetError, match=r"disk is full.*WORKBENCH_CACHE"):
        made(recipe())
    assert [path for path in cache.iterdir() if path.is_dir()] == []
    monkeypatch.undo()
    monkeypatch.setenv("WORKBENCH_CACHE", str(cache))
    assert content(made(recipe())) == THREE


def test_an_interrupt_leaves_nothing(cache: Path):
    def interrupted(folder: Path) -> list[Source]:
        (folder / "a.txt").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(recipe(make=interrupted))
    assert [path for path in cache.iterdir() if path.is_dir()] == []


def test_a_cache_that_cannot_be_written_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(DatasetError, match=r"cannot be written.*WORKBENCH_CACHE"):
        made(recipe())


def test_a_read_only_file_system_is_the_same(monkeypatch: pytest.MonkeyPatch):
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(DatasetError, match=r"cannot be written.*WORKBENCH_CACHE"):
        made(recipe())


SLOWLY = """
import sys, time
from pathlib import Path
from workbench.datasets.cache import Recipe, made

def make(folder):
    (folder / "a.txt").write_text("half a set")
    print("making", flush=True)
    time.sleep(60)

made(Recipe(name="letters", version=1, parameters={"n": 3}, versions={"pen": "1.0"}, make=make))
"""


def test_a_killed_process_leaves_no_set_and_no_lock(cache: Path):
    with subprocess.Popen([sys.executable, "-c", SLOWLY], stdout=subprocess.PIPE) as slow:
        assert slow.stdout is not None
        assert slow.stdout.readline() == b"making\n"
        os.kill(slow.pid, signal.SIGKILL)
    assert len(list(cache.glob(f"{BEING_MADE}*"))) == 1
    assert not (cache / recipe().folder_name).exists()

    assert content(made(recipe())) == THREE  # not blocked by a lock of the dead
    assert list(cache.glob(f"{BEING_MADE}*")) == []


MADE_BY_TWO = """
import sys, time
from pathlib import Path
from workbench.datasets.cache import Recipe, made

def make(folder):
    with open(sys.argv[1], "a") as log:
        log.write("made\\n")
    time.sleep(0.5)
    (folder / "a.txt").write_text("whole")
    return []

path = made(Recipe(name="shared", version=1, parameters={}, versions={}, make=make))
print((path / "a.txt").read_text())
"""


def test_of_two_processes_one_makes_the_set_and_both_get_it(tmp_path: Path):
    log = tmp_path / "log"
    command = [sys.executable, "-c", MADE_BY_TWO, str(log)]
    pair = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [one.communicate(timeout=60)[0] for one in pair] == ["whole\n", "whole\n"]
    assert log.read_text() == "made\n"


def test_of_two_threads_one_makes_the_set_too():
    times: list[int] = []

    def slow(folder: Path) -> list[Source]:
        times.append(1)
        time.sleep(0.2)
        (folder / "a.txt").write_text("whole")
        return []

    pair = [threading.Thread(target=made, args=(recipe(make=slow),)) for _ in range(2)]
    for one in pair:
        one.start()
    for one in pair:
        one.join(timeout=30)
    assert len(times) == 1


def test_without_the_variable_the_users_cache_folder_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("WORKBENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder().is_relative_to(tmp_path)
    assert "torch-workbench" in cache_folder().parts
