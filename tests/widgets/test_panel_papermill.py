"""A notebook with a panel as a program runs it: papermill, then HTML without a kernel."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.slow

CELL = """
import threading
import torch
from torch import nn
from torch.utils.data import TensorDataset
import workbench as wb

torch.set_num_threads(1)
torch.manual_seed(0)
data = TensorDataset(torch.randn(256, 8), torch.randint(0, 2, (256,)))
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
work = wb.Workload(
    model, data, loss=nn.functional.cross_entropy, optimizer=optimizer, batch_size=8, name="small"
)
wb.panel(work, steps=30, folder="runs")
"""
AFTER = 'print([t.name for t in threading.enumerate() if "workbench" in t.name])'


def notebook(cells: list[str]) -> dict[str, Any]:
    made = [
        {
            "cell_type": "code",
            "id": f"c{i}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for i, source in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def run(*command: str, at: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=at, capture_output=True, text=True, check=False
    )


class Executed(NamedTuple):
    """What papermill made of one notebook: a panel, and then a cell that fails."""

    code: int
    said: str
    cells: list[dict[str, Any]]
    file: Path


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Executed:
    folder = tmp_path_factory.mktemp("papermill")
    loop = "%%workbench runs/mine\nfor _ in range(4):\n    cap.step()\n1 / 0"
    cells = [CELL, AFTER, "%load_ext workbench", loop]
    (folder / "in.ipynb").write_text(json.dumps(notebook(cells)), encoding="utf-8")
    done = run("papermill", "in.ipynb", "out.ipynb", at=folder)
    made = json.loads((folder / "out.ipynb").read_text(encoding="utf-8"))["cells"]
    own = [cell for cell in made if cell["source"] and "papermill-error" not in str(cell)]
    return Executed(done.returncode, done.stderr, own, folder / "out.ipynb")


def test_papermill_waits_for_the_panel(executed: Executed):
    shown, after = (cell["outputs"] for cell in executed.cells[:2])
    (result,) = (one["data"] for one in shown if one["output_type"] == "execute_result")

    assert "A step of small takes" in "".join(result["text/plain"])
    assert "application/vnd.jupyter.widget-view+json" not in result
    assert "".join(after[0]["text"]).strip() == "[]"


def test_the_page_needs_no_kernel(executed: Executed):
    from nbconvert import HTMLExporter

    html, _ = HTMLExporter().from_filename(str(executed.file))

    assert "A step of small takes" in html
    assert "Where a step goes" in html
    assert "model not found" not in html
    assert "Loading widget" not in html


def test_a_cell_that_fails_under_the_magic_fails_papermill(executed: Executed):
    assert executed.code != 0
    assert "ZeroDivisionError" in executed.said
