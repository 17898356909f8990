"""A notebook with a panel as a program runs it: papermill, then HTML without a kernel."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def test_papermill_waits_for_it_and_the_page_needs_no_kernel(tmp_path: Path):
    (tmp_path / "in.ipynb").write_text(json.dumps(notebook([CELL, AFTER])), encoding="utf-8")
    done = run("papermill", "in.ipynb", "out.ipynb", at=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    shown, after = (
        cell["outputs"] for cell in json.loads((tmp_path / "out.ipynb").read_text())["cells"]
    )
    (result,) = (one["data"] for one in shown if one["output_type"] == "execute_result")

    assert "A step of small takes" in "".join(result["text/plain"])
    assert "application/vnd.jupyter.widget-view+json" not in result
    assert "".join(after[0]["text"]).strip() == "[]"

    done = run("nbconvert", "--to", "html", "out.ipynb", at=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    html = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "A step of small takes" in html
    assert "Where a step goes" in html
    assert "model not found" not in html
    assert "Loading widget" not in html


def test_papermill_fails_on_a_cell_that_fails_under_the_magic(tmp_path: Path):
    loop = "%%workbench runs/mine\nfor _ in range(4):\n    cap.step()\n1 / 0"
    cells = ["%load_ext workbench", loop]
    (tmp_path / "in.ipynb").write_text(json.dumps(notebook(cells)), encoding="utf-8")
    done = run("papermill", "in.ipynb", "out.ipynb", at=tmp_path)

    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr
