"""The panel's JavaScript under node: its pure parts, and that the joined script is one."""

import shutil
import subprocess
from pathlib import Path

import pytest

from workbench.pages.script import joined

HERE = Path(__file__).parent
WIDGETS = HERE.parents[1] / "widgets"


def node(*arguments: str) -> str:
    """Standard output of node, which ``python -m tests.system`` installs."""
    program = shutil.which("node") or shutil.which("nodejs")
    if program is None:
        pytest.fail("Node.js is missing: run `python -m tests.system` first.")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_numbers_scales_bins_and_messages():
    assert "# fail 0" in node("--test", "--test-reporter=tap", str(HERE / "panel.test.mjs"))


@pytest.mark.parametrize("entry", ["panel/panel.js", "switches.js"])
def test_the_modules_become_one_script_with_one_export(tmp_path: Path, entry: str):
    script = tmp_path / "joined.mjs"
    text = joined(WIDGETS / entry)
    script.write_text(text, encoding="utf-8")
    told = node("-e", f"import('{script}').then((all) => console.log(Object.keys(all)))")

    assert told.strip() == "[ 'default' ]"
    assert "import {" not in text
    assert "http" not in text  # nothing is fetched from anywhere
    assert "innerHTML" not in text  # names of others are only ever text
