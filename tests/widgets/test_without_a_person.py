"""One notebook with everything that is a widget elsewhere, run by programs: nothing may wait."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.jobs import job_trace
from tests.widgets.test_panel_papermill import notebook

pytestmark = pytest.mark.slow

WORK = """
import torch
from torch import nn
import workbench as wb

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Linear(8, 2)
data = [(torch.randn(8, 8), torch.randint(0, 2, (8,))) for _ in range(8)]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
work = wb.Workload(model, data, loss=nn.functional.cross_entropy, optimizer=optimizer, name="small")
"""
SHOWN = (
    ('wb.panel(work, steps=20, folder="runs")', "A step of small takes"),
    ('run = wb.profile(work, steps=4, folder="runs", progress=False)\nrun.timeline()', "The loop"),
    ("wb.compare(run, run)", "cannot tell"),
    (
        'wb.verify(work, wb.Settings(optimizer="foreach"), blocks=2, steps=3, folder="runs")',
        "optimizer=foreach",
    ),
    ('wb.tune(work, budget=20, only="optimizer", folder="tuned")', "small"),
    ('wb.open("job").figure("ranks")', "rank 2"),
)
"""What each cell ends with, and what its still page says of it."""
SECONDS = 240
"""A limit, not a measure: what waits for a click never ends."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A notebook, the same as a script, and a job of three ranks, the last of which is slow."""
    (tmp_path / "job").mkdir()
    for rank in range(3):
        job_trace(rank, [300, 400, 500]).write(tmp_path / "job" / f"rank{rank}.json")
    cells = [WORK, *(cell for cell, _ in SHOWN)]
    (tmp_path / "in.ipynb").write_text(json.dumps(notebook(cells)), encoding="utf-8")
    lines = [WORK]
    for cell, _ in SHOWN:
        *before, last = cell.split("\n")
        lines += [*before, f"print({last})"]
    guarded = "\n".join(f"    {line}" for line in "\n".join(lines).split("\n"))
    script = f'if __name__ == "__main__":\n{guarded}\n'
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    return tmp_path


def run(*command: str, at: Path) -> subprocess.CompletedProcess[str]:
    """A program that has no keyboard, and ends."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=at,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


@pytest.mark.parametrize(
    "program",
    [
        "nbconvert",
        *(pytest.param(each, marks=pytest.mark.soak) for each in ("papermill", "script")),
    ],
)
def test_programs_get_still_pages_of_everything(folder: Path, program: str) -> None:
    command = {
        "papermill": ("-m", "papermill", "in.ipynb", "out.ipynb"),
        "nbconvert": ("-m", "nbconvert", "--execute", "--to", "html", "in.ipynb"),
        "script": ("script.py",),
    }[program]
    done = run(*command, at=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    if program == "papermill":
        made = json.loads((folder / "out.ipynb").read_text(encoding="utf-8"))["cells"]
        cells = [cell for cell in made if cell["source"]]
        assert len(cells) == len(SHOWN) + 1
        for cell, (_, said) in zip(cells[1:], SHOWN, strict=True):
            results = [o for o in cell["outputs"] if o["output_type"] == "execute_result"]
            assert len(results) == 1, cell["source"]
            data = results[0]["data"]
            assert "application/vnd.jupyter.widget-view+json" not in data, cell["source"]
            assert said in "".join(data["text/html"]), cell["source"]
        return
    text = done.stdout
    if program == "nbconvert":
        text = (folder / "in.html").read_text(encoding="utf-8")
        assert 'widget-view+json">' not in text, "a widget; the template's own script asks for it"
        assert "Loading widget" not in text
    for source, said in SHOWN:
        assert said in text, source
