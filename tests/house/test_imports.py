"""Who may import what: the contracts hold, and they notice when one is broken."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.files import ROOT, copy_project

pytestmark = pytest.mark.slow


WITHOUT_TORCH = (
    *("store", "trace", "analysis", "hardware", "findings", "figures", "pages", "run"),
    "reporting",
)
RECORDING = ("recording", "parallel", "workload", "machine", "datasets")

BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked in this test", name=name)
sys.meta_path.insert(0, Block())
"""


def run_python(code: str) -> str:
    """Standard output of code in a fresh interpreter at the root."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def lint_imports(at: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as run; run()",
    ]
    arguments = ["--no-cache", "--no-logo"]
    return subprocess.run(
        [*command, *arguments], cwd=at, capture_output=True, text=True, check=False
    )


def rooms() -> set[str]:
    """Modules and packages directly below ``workbench``."""
    found = {path.stem for path in (ROOT / "workbench").glob("*.py")}
    found |= {path.parent.name for path in (ROOT / "workbench").glob("*/__init__.py")}
    return found - {"__init__"}


def contracts() -> dict[str, dict[str, list[str]]]:
    written = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {one["name"]: one for one in written["tool"]["importlinter"]["contracts"]}


def test_the_contracts_hold():
    done = lint_imports(ROOT)

    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("workbench/attic.py", '"""A room without a floor."""\n', "attic"),
        ("workbench/trace/up.py", "from workbench.run import run\n", "Imports only go down"),
        ("workbench/analysis/heavy.py", "def f():\n    import torch\n", "need no torch"),
        ("workbench/figures/live.py", "import workbench.machine\n", "meet only at the folder"),
        ("workbench/cli/show.py", "import IPython\n", "Only widgets knows"),
        ("widgets/chart.py", "import plotly\n", "Only figures and pages know plotly"),
    ],
)
def test_a_broken_rule_is_noticed(tmp_path: Path, file: str, text: str, complaint: str):
    copy = copy_project(tmp_path)
    (copy / file).write_text(text, encoding="utf-8")
    done = lint_imports(copy)

    assert done.returncode == 1, done.stdout
    assert complaint in done.stdout


def test_the_contracts_name_every_room_that_they_are_about():
    reading = contracts()["Reading and analysing need no torch and no Jupyter"]
    meeting = contracts()["Recording and analysis meet only at the folder on disk"]
    there = rooms()

    wanted = {f"workbench.{room}" for room in WITHOUT_TORCH if room in there}
    assert set(reading["source_modules"]) == wanted
    forbidden = {f"workbench.{room}" for room in RECORDING if room in there}
    assert set(meeting["forbidden_modules"]) == forbidden


def test_every_room_that_needs_no_torch_imports_without_torch_and_jupyter():
    code = (
        BLOCK.format(blocked={"torch", "ipywidgets", "anywidget", "IPython"})
        + f"""
import importlib, pkgutil
import workbench.cli, workbench.statistics
for room in {WITHOUT_TORCH!r}:
    module = importlib.import_module("workbench." + room)
    for found in pkgutil.walk_packages(getattr(module, "__path__", []), module.__name__ + "."):
        importlib.import_module(found.name)
        print(found.name)
"""
    )
    assert "workbench.trace.reader" in run_python(code).split()


def test_a_name_that_needs_torch_says_how_to_get_it():
    code = BLOCK.format(blocked={"torch"}) + (
        "import workbench as wb\n"
        "from workbench.errors import MissingExtraError\n"
        "try:\n    wb.Workload\nexcept MissingExtraError as error:\n    print(error)\n"
    )

    said = run_python(code)
    assert 'pip install "torch-workbench[torch]"' in said
    assert 'from a clone:  pip install ".[torch]"' in said


def test_widgets_without_jupyter_say_how_to_get_it():
    code = BLOCK.format(blocked={"anywidget"}) + (
        "from workbench.errors import MissingExtraError\n"
        "try:\n    import workbench.widgets\nexcept MissingExtraError as error:\n    print(error)\n"
    )

    assert 'pip install "torch-workbench[notebook]"' in run_python(code)


def test_import_workbench_loads_nothing_heavy():
    heavy = ("torch", "pandas", "pyarrow", "plotly", "scipy", "numpy", "IPython", "rich", "typer")
    loaded = run_python("import sys, workbench\nprint(*sys.modules)").split()

    assert set(loaded).isdisjoint(heavy)
