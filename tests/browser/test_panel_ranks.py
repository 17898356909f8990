"""The panel's switch of parallelism in a real JupyterLab: training moves into ranks and back."""

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Notebook

WORK = """
import os
os.environ["OMP_NUM_THREADS"] = "1"
import threading, torch
import torch.nn.functional as F
from torch import nn
import workbench as wb

torch.set_num_threads(1)
torch.manual_seed(0)

class Block(nn.Module):  # of the notebook: no module that ranks could import
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)
    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))

model = nn.Sequential(Block(), Block(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(2048, 32), torch.randint(4, (2048,)))
work = wb.Workload(model, data, loss=F.cross_entropy, optimizer=optimizer, batch_size=8)
before = {n: v.clone() for n, v in model.state_dict().items()}
"""
PANEL = """
panel = wb.panel(work, folder="runs")
panel
"""
LONG_MS = 120_000


@pytest.mark.timeout(400)
def test_training_moves_into_ranks_and_back(shared: Notebook) -> None:
    page = shared.page
    page.set_viewport_size({"width": 1500, "height": 1400})
    shared.open("ranks.ipynb", [WORK, PANEL])
    for number in (0, 1):
        shared.run_cell(number)

    def truth(expression: str) -> None:
        for _ in range(LONG_MS // 400):
            if shared.ask(expression) == "True":
                return
            page.wait_for_timeout(100)
        raise AssertionError(expression)

    page.get_by_role("button", name="Start", exact=True).click()
    truth("panel.session.state.step > 20")
    page.locator(".wb-groups summary", has_text="Parallelism").click()
    page.get_by_label("Parallelism", exact=True).select_option("ddp")
    truth("len(panel.session.ranks) == 2")
    truth("panel.session.telemetry.last(1)['samples'].tolist() == [8.0]")
    expect(page.locator(".wb-panel")).to_contain_text("rank 1: the last step took", timeout=LONG_MS)
    expect(page.locator(".wb-panel")).to_contain_text("Training in 2 ranks", timeout=LONG_MS)
    asked = int(shared.ask("panel.session.state.step"))
    truth(f"panel.session.state.step > {asked + 20}")

    page.get_by_label("Parallelism", exact=True).select_option("none")
    truth("panel.session.ranks == () and panel.session.state.pending is None")
    truth(f"float(optimizer.state[model[2].weight]['step']) >= {asked + 20}")
    assert shared.ask("[c.error for c in panel.session.changes]") == "[None, None]"
    page.get_by_role("button", name="Stop…", exact=True).click()
    page.get_by_role("button", name="Discard: put all back", exact=True).click()
    expect(page.locator(".wb-status strong")).to_have_text("Stopped", timeout=LONG_MS)
    assert shared.ask("all(before[n].equal(v) for n, v in model.state_dict().items())") == "True"
    assert shared.ask("__import__('psutil').Process().children(recursive=True)") == "[]"
    shared.ask("panel.close()")
    assert shared.outside_requests == []
    assert shared.console_errors == []
