"""Every mode runs from a real notebook, whose model and data set live in its own cells."""

from pathlib import Path

import nbformat
import papermill
import pytest

pytestmark = pytest.mark.soak

CELLS = (
    """
import torch
from torch import nn
from torch.nn import functional
import workbench as wb
torch.set_num_threads(1)
torch.mm(torch.ones(64, 64), torch.ones(64, 64))  # OpenMP was used before

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, inputs):
        return inputs + self.fc2(functional.relu(self.fc1(inputs)))

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((16,), index / 64), index % 3

model = nn.Sequential(Block(), Block(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters())
work = wb.Workload(
    model, Numbers(), loss=lambda output, target: functional.cross_entropy(output, target),
    optimizer=optimizer, batch_size=8,
)
before = [p.detach().clone() for p in model.parameters()]
""",
    """
for mode in ("none", "ddp", "fsdp", "tp", "pp"):
    run = wb.profile(work, wb.Settings(parallel=mode), steps=3, folder="runs", name=mode)
    print(mode, len(run.ranks), run.record.samples_per_step)
assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
""",
)


def test_every_mode_runs_from_a_notebook(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    source, done = tmp_path / "in.ipynb", tmp_path / "out.ipynb"
    nbformat.write(notebook, source)
    papermill.execute_notebook(
        source, done, cwd=tmp_path, progress_bar=False, kernel_name="python3"
    )
    outputs = nbformat.read(done, as_version=4).cells[1].outputs
    text = "".join(out.get("text", "") for out in outputs if out.get("name") == "stdout")
    assert text.split("\n")[:5] == [
        "none 1 8.0",
        *(f"{mode} 2 8.0" for mode in ("ddp", "fsdp", "tp", "pp")),
    ]
