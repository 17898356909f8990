"""Fresh workers cannot import what a notebook or console defines: both ways of measuring say so."""

import subprocess
import sys

import pytest

from tests.house.files import ROOT

CONSOLE = """
import multiprocessing
import torch
import workbench as wb
from workbench.errors import WorkbenchError
from torch.utils.data import DataLoader, Dataset

class Mine(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        return torch.ones(4)

loader = DataLoader(Mine(), batch_size=4, num_workers=1, multiprocessing_context="spawn")
try:
    wb.profile(wb.Workload(torch.nn.Linear(4, 2), loader), progress=False, folder={folder!r})
except WorkbenchError as error:
    print("profile:", error)
try:
    with wb.capture({folder!r} + "/captured") as cap:
        for batch in cap.watch(loader):
            cap.step()
except RuntimeError as error:
    print("capture:", *error.__notes__)
print("left:", multiprocessing.active_children())
"""


@pytest.mark.slow
def test_a_data_set_of_a_console(tmp_path: object) -> None:
    """Python that reads its program from a pipe has no file either."""
    done = subprocess.run(
        [sys.executable, "-"],
        input=CONSOLE.format(folder=str(tmp_path)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = done.stdout.splitlines()
    assert len(said) == 3, done.stderr
    for line, way in zip(said, ("profile", "capture"), strict=False):
        assert line.startswith(f"{way}: Mine is defined in the notebook or console")
        assert "move it into a module, use multiprocessing_context='fork', or workers=0" in line
    assert said[2] == "left: []"
