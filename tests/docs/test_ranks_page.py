"""The script of docs/ranks.md runs as it stands, under torchrun."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.files import ROOT

pytestmark = pytest.mark.slow


def test_the_script_records_both_ranks_and_shows_them_together(tmp_path: Path):
    page = (ROOT / "docs" / "ranks.md").read_text(encoding="utf-8")
    script = next(re.finditer(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE))[1]
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*command, "--nproc-per-node", "2", "train.py"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert shown.startswith("job "), "the Run says its name"
    assert re.search(r"Rank 1, |On 2 ranks|the other ranks or devices", shown), shown
    found = sorted(each.name for each in (tmp_path / "runs" / "job").iterdir())
    assert found == ["rank0", "rank1"]
