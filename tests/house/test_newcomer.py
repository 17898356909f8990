"""The first minutes of somebody who has only Python, make and a package index."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.house.files import ROOT, copy_project
from tests.kineto import Kineto

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


def fresh_home(folder: Path) -> dict[str, str]:
    """This environment with an empty home and no virtual environment in force."""
    folder.mkdir()
    dropped = ("VIRTUAL_ENV", "PYTHONPATH", "XDG_CACHE_HOME", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    search = kept["PATH"].split(os.pathsep)
    path = [place for place in search if Path(place) != Path(sys.executable).parent]
    return {**kept, "HOME": str(folder), "PATH": os.pathsep.join(path)}


def run(*command: str, at: Path, env: Mapping[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=at,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:]
    return done.stdout


def report_in(output: str, folder: Path) -> Path:
    """The report whose path the demo printed."""
    line = re.search(r"^Report: +(.+\.html)$", output, re.MULTILINE)
    assert line, output[-5000:]
    return folder / line[1]


def test_make_demo_ends_with_a_report_and_what_it_found(tmp_path: Path):
    clone = copy_project(tmp_path / "a clone")
    output = run("make", "demo", at=clone, env=fresh_home(tmp_path / "home"))

    assert report_in(output, clone).stat().st_size > 0
    assert "WB101" in output
    assert "make lab" in output
    # The shell that ran make does not find the command: it must be told how to.
    assert ". .venv/bin/activate" in output


def test_an_installed_wheel_works_in_an_empty_folder(tmp_path: Path):
    home = fresh_home(tmp_path / "home")
    clone = copy_project(tmp_path / "clone")
    empty = tmp_path / "empty"
    empty.mkdir()
    Kineto(gpu=True).write(empty / "trace.json")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", at=clone, env=home)
    (wheel,) = (clone / "dist").glob("*.whl")
    run(sys.executable, "-m", "venv", "venv", at=tmp_path, env=home)
    binaries = tmp_path / "venv/bin"
    pins = str(ROOT / "constraints.txt")
    pip = (str(binaries / "python"), "-m", "pip", "install", "-c", pins, f"{wheel}[all]")
    run(*pip, at=empty, env=home)

    run(str(binaries / "workbench"), "report", "trace.json", at=empty, env=home)
    output = run(str(binaries / "workbench"), "demo", at=empty, env=home)

    assert (empty / "report.html").stat().st_size > 0
    assert report_in(output, empty).stat().st_size > 0
    assert "WB101" in output
