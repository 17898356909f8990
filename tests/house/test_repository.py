"""What is stored: small, clean files, and no trace of the machine that wrote them."""

import json
import re
from pathlib import Path

import pytest

from tests.house.files import ROOT, project_files
from tests.system import NEEDS

LIMIT_BYTES = 1_000_000
# Folders that only somebody's own machine has; every machine has /dev, /proc, /tmp and /usr, and
# tests may tell of the home of alice.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|Users|root|work|mnt|workspace)/(?!alice\b)[\w.]")
SHOWN_PATHS = {"tests/house/test_repository.py"}


def texts() -> list[tuple[str, str]]:
    found = []
    for name in project_files():
        if (ROOT / name).is_symlink():
            continue
        data = (ROOT / name).read_bytes()
        if b"\0" not in data:
            found.append((name, data.decode("utf-8")))
    return found


def test_no_file_is_large():
    sizes = {name: (ROOT / name).lstat().st_size for name in project_files()}

    assert {name: size for name, size in sizes.items() if size > LIMIT_BYTES} == {}


def test_no_file_names_a_place_on_somebodys_machine():
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts()
        if name not in SHOWN_PATHS
        for number, line in enumerate(text.splitlines(), start=1)
        if MACHINE_PATH.search(line)
    ]

    assert found == []


@pytest.mark.parametrize("line", ["see /home/ann/x", '"/Users/ann"', "/root/.cache"])
def test_a_place_on_somebodys_machine_would_be_noticed(line: str):
    assert MACHINE_PATH.search(line)


@pytest.mark.parametrize(
    "line",
    ["/usr/bin/env", "/home/alice/x.jpg", "PYTHON=/path/to/python3.12", "a/work/b", "/dev/shm"],
)
def test_an_ordinary_path_is_left_alone(line: str):
    assert not MACHINE_PATH.search(line)


def test_notebooks_are_stored_without_outputs():
    for name in project_files():
        if not name.endswith(".ipynb"):
            continue
        cells = json.loads((ROOT / name).read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            assert not cell.get("outputs"), name
            assert cell.get("execution_count") is None, name


def test_data_sets_hold_no_python():
    stored = [Path(name) for name in project_files() if name.startswith("datasets/")]

    assert stored
    assert {"".join(path.suffixes) for path in stored} == {".md", ".trace.json.gz"}


def test_every_folder_of_code_is_a_package():
    for name in project_files():
        if name.startswith(("workbench/", "widgets/")) and name.endswith(".py"):
            assert (ROOT / name).with_name("__init__.py").exists(), name


def test_ci_installs_every_system_package_that_the_tests_need():
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    installed = re.search(r"apt-get install (.*?)\n\n", script, flags=re.DOTALL)

    assert installed
    assert {need.debian for need in NEEDS} <= set(installed[1].split())


def test_ci_runs_the_commands_that_contributing_gives():
    commands = re.findall(
        r"^make (\w+)", (ROOT / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE
    )
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

    assert "test" in commands
    assert all(f"make {command}" in contributing for command in commands)
