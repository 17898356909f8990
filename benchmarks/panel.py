"""A panel that stays open in JupyterLab: memory of page and kernel, messages, clicks, lost steps.

    python benchmarks/panel.py [MINUTES]

Trains a small loop behind a live panel for so many minutes (30, or the variable PANEL_MINUTES)
while switches are clicked and bursts are recorded. Targets: memory of the page and of the kernel
within 5 % of what it was after the first quarter, at most 10 messages a second, no step lost, a
click applied within 100 ms and one step (median). Prints a row a minute, and fails where a target
is missed.
"""

import ast
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.browser.lab import Notebook, own_notebook

MEMORY, MESSAGES_S, CLICK_MS = 0.05, 10.0, 100.0
BURST_EVERY_S = 120
WORK = """
import gc, os, threading, time, psutil, torch
import torch.nn.functional as F
from torch import nn
import workbench as wb
torch.manual_seed(0)
torch.set_num_threads(1)
data = torch.utils.data.TensorDataset(torch.randn(4096, 64), torch.randint(0, 4, (4096,)))
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 4))
class Paced(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        time.sleep(0.01)
        return self.inner(x)
work = wb.Workload(Paced(model), data, loss=F.cross_entropy,
                   optimizer=torch.optim.SGD(model.parameters(), lr=0.01), batch_size=32)
process = psutil.Process()
def seen():
    gc.collect()
    known = panel.session.telemetry.columns()["step"]
    whole = bool(len(known)) and known.tolist() == list(range(int(known[0]), int(known[-1]) + 1))
    return dict(rss=process.memory_info().rss, step=panel.session.state.step, whole=whole,
                threads=threading.active_count(), error=panel.session.state.error)
def clicks():
    now, mono = time.time_ns(), time.monotonic_ns()
    return [(c.applied_ns + now - mono) / 1e6 for c in panel.session.changes if c.applied_ns]
"""
PANEL = "panel = wb.panel(work, folder='runs')\npanel"
COUNT = """() => {
  window.arrived = 0;
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  kernel.anyMessage.connect((_, { msg, direction }) => {
    if (direction === "recv" && msg.header.msg_type.startsWith("comm_msg")) window.arrived += 1;
  });
}"""
CLICK = """(value) => {
  const field = document.querySelector(".wb-panel select[name=set_to_none]");
  field.value = value;
  const at = performance.timeOrigin + performance.now();
  field.dispatchEvent(new Event("change", { bubbles: true }));
  return at;
}"""
OWN_NODES = """() => {
  const walk = document.createTreeWalker(document.querySelector(".wb-panel"), NodeFilter.SHOW_ALL);
  let count = 0;
  while (walk.nextNode()) count += 1;
  return count;
}"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What was seen at the end of a minute."""

    minute: float
    heap: float
    nodes: int
    own_nodes: int
    rss: float
    messages_s: float
    step: int
    whole: bool
    threads: int
    error: str | None

    def __str__(self) -> str:
        return (
            f"| {self.minute:.0f} | {self.heap / 1e6:.1f} MB | {self.nodes} | "
            f"{self.own_nodes} | {self.rss / 1e6:.0f} MB | {self.messages_s:.1f} | "
            f"{self.step} | {self.threads} |"
        )


def look(page: Page, notebook: Notebook, cdp: CDPSession, began: float, last: Any) -> Row:
    """Memory after a collection on both sides, and what arrived since the last look."""
    arrived, now = page.evaluate("window.arrived"), time.monotonic()
    told = ast.literal_eval(notebook.ask("seen()"))
    cdp.send("HeapProfiler.collectGarbage")
    heap = cdp.send("Runtime.getHeapUsage")["usedSize"]
    nodes = cdp.send("Memory.getDOMCounters")["nodes"]
    own = page.evaluate(OWN_NODES)
    rate = (arrived - last[0]) / (now - last[1])
    last[:] = [arrived, now]
    return Row(
        minute=(now - began) / 60, heap=heap, nodes=nodes, own_nodes=own, messages_s=rate, **told
    )


def soak(page: Page, notebook: Notebook, minutes: float) -> tuple[list[Row], list[float]]:
    """Switch every 5 s, look every minute; the rows, and milliseconds from click to applied."""
    notebook.open("panel.ipynb", [WORK, PANEL])
    notebook.run_all()
    page.get_by_role("button", name="Start", exact=True).click(timeout=60_000)
    page.evaluate(COUNT)
    notebook.ask(f"setattr(panel.session, 'burst_every_s', {BURST_EVERY_S})")
    page.locator(".wb-groups summary", has_text="Optimizer").click()
    cdp = page.context.new_cdp_session(page)
    began = time.monotonic()
    last, rows, sent = [0, began], [], list[float]()
    while (gone := time.monotonic() - began) < minutes * 60:
        sent.append(page.evaluate(CLICK, ("on", "off")[len(sent) % 2]))
        page.wait_for_timeout(5000)
        if gone // 60 > len(rows) - 1:
            rows.append(look(page, notebook, cdp, began, last))
            print(rows[-1], flush=True)
    applied = ast.literal_eval(notebook.ask("clicks()"))
    return rows, [at - by for by, at in zip(sent, applied, strict=False)]


def judged(rows: list[Row], waits: list[float], step_ms: float) -> list[str]:
    """What missed its target."""
    quarter = rows[len(rows) // 4]
    missed = []
    for name in ("heap", "rss"):
        most = max(getattr(row, name) for row in rows[len(rows) // 4 :])
        grown = most / getattr(quarter, name) - 1
        print(f"{name}: at most {grown:+.1%} of that after {quarter.minute:.0f} minutes")
        if grown > MEMORY:
            missed.append(name)
    busiest = max(row.messages_s for row in rows)
    wait = statistics.median(waits)
    print(f"messages: at most {busiest:.1f} a second")
    print(f"click to applied: median {wait:.0f} ms of {len(waits)}, with steps of {step_ms:.0f} ms")
    print(f"steps: {rows[-1].step}, none lost: {all(row.whole for row in rows)}")
    missed += ["messages"] if busiest > MESSAGES_S else []
    missed += ["click"] if wait > CLICK_MS + step_ms else []
    missed += ["steps"] if not all(row.whole for row in rows) else []
    return missed + [f"error: {row.error}" for row in rows if row.error]


def main(minutes: float) -> int:
    """Measure; 1 when a target is missed."""
    with own_notebook() as notebook:
        print(
            "| minute | heap of the page | nodes | of the panel | kernel | messages/s | step | "
            "threads |"
        )
        rows, waits = soak(notebook.page, notebook, minutes)
        times = "panel.session.telemetry.columns()['step_ns']"
        step_ms = float(notebook.ask(f"float(__import__('numpy').nanmedian({times}))")) / 1e6
        notebook.ask("panel.close()")
        missed = judged(rows, waits, step_ms)
        missed += [*notebook.console_errors, *notebook.outside_requests]
    print(f"missed: {', '.join(missed) or 'nothing'}")
    return 1 if missed else 0


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PANEL_MINUTES", "30")
    sys.exit(main(float(given)))
