"""What gets installed: from the clone, from the sdist, and in place."""

import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.house.files import copy_project, project_files

pytestmark = pytest.mark.slow

DATA = (".js", ".css", ".html", ".json", ".csv", ".typed")
BESIDE = {
    "widgets/": ("workbench/widgets/", (".py", *DATA)),
    "notebooks/": ("workbench/_notebooks/", (".ipynb",)),
    "datasets/": ("workbench/_cards/", (".md", ".trace.json.gz")),
    "workbench/": ("workbench/", (".py", *DATA)),
}


def expected_names() -> set[str]:
    """Every file of the four folders, at the place where it is imported or looked for."""
    names = set()
    for file in project_files():
        folder = file[: file.find("/") + 1]
        if folder in BESIDE:
            place, suffixes = BESIDE[folder]
            if file.endswith(suffixes):
                names.add(place + file.removeprefix(folder))
    return names


def build(*arguments: str, at: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", *arguments]
    done = subprocess.run(command, cwd=at, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def wheel_names(folder: Path) -> list[str]:
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if ".dist-info/" not in name]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_project(tmp_path_factory.mktemp("clone"))


@pytest.fixture(scope="module")
def built(clone: Path) -> Path:
    """A folder with the sdist, and with the wheel made from that sdist."""
    build("--outdir", "dist", at=clone)
    return clone / "dist"


def test_the_only_top_level_name_of_the_wheel_is_workbench(built: Path):
    assert {name.split("/")[0] for name in wheel_names(built)} == {"workbench"}


def test_the_wheel_holds_every_file_of_the_four_folders_once_and_no_other(built: Path):
    names = wheel_names(built)

    assert set(names) == expected_names()
    assert len(names) == len(set(names))


def test_cards_carry_no_python(built: Path):
    cards = [name for name in wheel_names(built) if name.startswith("workbench/_cards/")]

    assert cards
    assert all(name.endswith((".md", ".trace.json.gz")) for name in cards)


def test_a_wheel_straight_from_the_clone_is_the_same(clone: Path, built: Path):
    build("--wheel", "--outdir", "direct", at=clone)

    assert sorted(wheel_names(clone / "direct")) == sorted(wheel_names(built))


def test_the_sdist_holds_no_file_twice(built: Path):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = [member.name.partition("/")[2] for member in archive if member.isfile()]

    assert any(name.startswith("widgets/") for name in names)
    assert not any(name.startswith("workbench/widgets/") for name in names)


def test_a_checkout_without_symlinks_makes_the_same_wheel(built: Path, tmp_path: Path):
    bare = copy_project(tmp_path / "bare")
    for link in ("widgets", "_notebooks", "_cards"):
        (bare / "workbench" / link).unlink()
    build("--wheel", "--outdir", "dist", at=bare)

    assert sorted(wheel_names(bare / "dist")) == sorted(wheel_names(built))


def test_an_editable_install_imports_the_folder_beside_the_package(tmp_path: Path):
    clone = copy_project(tmp_path / "clone")
    site = tmp_path / "site"
    hook = "import sys; from setuptools.build_meta import build_editable; build_editable('dist')"
    (clone / "dist").mkdir()
    subprocess.run([sys.executable, "-c", hook], cwd=clone, check=True, capture_output=True)
    (wheel,) = (clone / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)

    # The interpreter runs without its site folder, where the project is installed already.
    question = f"""
import sys, site
site.addsitedir({str(site)!r})
sys.path.append({sysconfig.get_path("purelib")!r})
import importlib.resources, workbench.widgets
print(workbench.widgets.__file__)
print(importlib.resources.files("workbench") / "_notebooks")
"""
    command = [sys.executable, "-I", "-S", "-c", question]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    widgets, notebooks = (Path(line).resolve() for line in done.stdout.splitlines())

    assert widgets == (clone / "widgets/__init__.py").resolve()
    assert notebooks == (clone / "notebooks").resolve()
