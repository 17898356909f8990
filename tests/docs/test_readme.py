"""The README's Python lines run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.files import ROOT

BLOCKS = re.findall(
    r"^```python\n(.*?)^```",
    (ROOT / "README.md").read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)


def test_the_example_is_short():
    (block,) = BLOCKS
    lines = [line for line in block.splitlines() if line and not line.startswith("import ")]

    assert len(lines) <= 10


@pytest.mark.slow
def test_the_example_runs_and_writes_its_report(tmp_path: Path):
    (block,) = BLOCKS
    (tmp_path / "example.py").write_text(block, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert re.search(r"faster|slower|cannot tell", done.stdout)
    assert (tmp_path / "report.html").stat().st_size > 0
