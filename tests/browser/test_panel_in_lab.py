"""The panel in a real JupyterLab, over a real training: what a click does is read back from it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import complaints_of
from tests.browser.lab import Notebook

WORK = """
import os
os.environ["OMP_NUM_THREADS"] = "1"
import threading, time, torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import Dataset
import workbench as wb

torch.set_num_threads(1)
torch.manual_seed(0)

class Slow(Dataset):
    def __len__(self):
        return 4096
    def __getitem__(self, i):
        time.sleep(0.003)
        return torch.full((3, 8, 8), float(i % 7)), i % 4

model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
work = wb.Workload(
    model, Slow(), loss=F.cross_entropy, optimizer=optimizer, batch_size=8, name="slow"
)
before = {n: v.clone() for n, v in model.state_dict().items()}
threads = set(threading.enumerate())
"""
PANEL = """
panel = wb.panel(work, folder="runs")
panel
"""
BUSY = """
until = time.monotonic() + 6
while time.monotonic() < until:
    pass
"""
PAST_MS = 20_000


class Bench:
    """One notebook with a panel, used by several tests one after the other."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.page = notebook.page

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def status(self, word: str) -> None:
        expect(self.page.locator(".wb-status strong")).to_have_text(word, timeout=PAST_MS)

    def truth(self, expression: str, *, is_: str = "True", tries: int = 100) -> None:
        """What the kernel says, once it says so."""
        for _ in range(tries):
            said = self.notebook.ask(expression)
            if said == is_:
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"{expression} is {said}, and not {is_}")

    def open_group(self, name: str) -> None:
        summary = self.page.locator(".wb-groups summary", has_text=name)
        if not summary.locator("xpath=..").evaluate("(details) => details.open"):
            summary.click()


@pytest.fixture(scope="module")
def opened(shared: Notebook) -> Iterator[Notebook]:
    shared.page.set_viewport_size({"width": 1500, "height": 1400})
    shared.open("panel.ipynb", [WORK, PANEL, BUSY])
    for number in (0, 1):
        shared.run_cell(number)
    yield shared
    shared.ask("panel.close()")
    assert shared.outside_requests == []
    assert shared.console_errors == []


@pytest.fixture
def bench(opened: Notebook) -> Bench:
    """A panel whose training does not run, with nothing switched."""
    made = Bench(opened)
    opened.ask("panel.session.stop()")
    opened.ask("panel.session.replace(wb.Settings())")
    made.truth("panel.session.state.settings == wb.Settings()")
    expect(opened.page.locator(".wb-status strong")).to_have_text(
        re.compile("Ready|Stopped"), timeout=PAST_MS
    )
    return made


def test_a_training_is_watched_switched_explained_and_put_back(bench: Bench):
    page = bench.page
    bench.status("Ready")
    bench.button("Start").click()
    bench.status("Running")
    bench.truth("panel.session.state.step > 20")

    # Charts move.
    first = page.locator(".wb-counters dd").first.inner_text()
    expect(page.get_by_text("of a step waits for data")).to_be_visible(timeout=PAST_MS)
    expect(page.locator(".wb-counters dd").first).not_to_have_text(first, timeout=PAST_MS)

    # Each group acts on the training, whatever the widget shows.
    for group, label, choice, setting in GROUPS:
        bench.open_group(group)
        control = page.get_by_label(label, exact=True)
        if control.evaluate("(one) => one.tagName") == "SELECT":
            control.select_option(choice)
        else:
            control.fill(choice)
            control.press("Tab")
        bench.truth(f"panel.session.state.settings.{setting[0]} == {setting[1]}")
    for expression in READ_BACK:
        bench.truth(expression)

    # A burst ends in findings.
    bench.button("Undo").click()
    bench.button("Record a burst").click()
    expect(page.locator(".wb-findings li").first).to_be_visible(timeout=60_000)
    bench.truth("len(panel.findings) > 0")
    assert complaints_of(page, within=".wb-panel") == []

    # Show me opens the timeline at its place, with a look of its own.
    page.get_by_role("button", name=re.compile("^Show me")).first.click()
    expect(page.locator(".wb-opened .wbt[data-painted]")).to_be_visible(timeout=PAST_MS)
    bench.truth("panel.timeline.selection is not None")
    strip = page.locator(".wb-opened .wbt-strip")
    assert strip.evaluate("(one) => getComputedStyle(one).position") == "static"
    bench.button("Close").click()

    # Stop puts everything back and leaves nothing running.
    bench.button("Stop…").click()
    bench.button("Discard: put all back").click()
    bench.status("Stopped")
    same = "all(torch.equal(before[n], v) for n, v in model.state_dict().items())"
    bench.truth(same)
    bench.truth(
        "[t.name for t in set(threading.enumerate()) - threads if 'workbench' in t.name]", is_="[]"
    )


GROUPS: tuple[tuple[str, str, str, tuple[str, str]], ...] = (
    ("Precision", "Precision", "bf16", ("precision", "'bf16'")),
    ("Batch and accumulation", "Gradient accumulation", "2", ("accumulation", "2")),
    ("Loader", "Loader workers", "1", ("workers", "1")),
    ("Optimizer", "Clip gradient norm", "0.5", ("clip_norm", "0.5")),
    ("Compile and layout", "Channels last", "on", ("channels_last", "True")),
)
READ_BACK: tuple[str, ...] = ()


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_try_it_ends_in_a_verdict_that_can_be_kept(bench: Bench):
    page = bench.page
    bench.button("Start").click()
    bench.truth("panel.session.state.step > 20")
    bench.button("Record a burst").click()
    expect(page.locator(".wb-findings li").first).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Try it").first.click()
    expect(bench.button("Keep it")).to_be_visible(timeout=300_000)
    bench.button("Keep it").click()
    bench.truth("panel.session.state.settings != wb.Settings()")
    answer: Any = bench.notebook.ask("panel.session.state.trial.verification.advice")
    assert answer in ("'keep'", "'revert'", "'cannot tell'")


def test_reload_busy_restart_and_errors_are_told_truthfully(bench: Bench):
    page, notebook = bench.page, bench.notebook
    bench.button("Start").click()
    bench.status("Running")

    # A page that is loaded again finds the training as it is.
    notebook.command("docmanager:save")
    page.reload()
    page.wait_for_function(
        "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel",
        timeout=60_000,
    )
    bench.status("Running")
    expect(page.get_by_text("A step takes")).to_be_visible(timeout=PAST_MS)

    # While a cell runs, buttons act or say why not.
    notebook.run_cell(2, wait=False)
    page.wait_for_timeout(500)
    bench.button("Pause").click(timeout=PAST_MS)
    bench.status("Paused")
    bench.truth("panel.session.state.status", is_="'paused'")

    # An impossible combination is said where it was asked for: by the settings themselves, or by
    # the loader that has no workers any more when the second is asked for.
    bench.open_group("Loader")
    page.get_by_label("Loader workers", exact=True).fill("0")
    page.get_by_label("Loader workers", exact=True).press("Tab")
    bench.truth("(panel.session.state.pending or panel.session.state.settings).workers", is_="0")
    page.get_by_label("Prefetch factor", exact=True).fill("2")
    page.get_by_label("Prefetch factor", exact=True).press("Tab")
    alert = page.get_by_role("alert").get_by_text(NO_WORKERS)
    expect(alert).to_be_visible(timeout=PAST_MS)

    page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    bench.status("Disconnected")
    expect(bench.button("Resume")).to_be_disabled()


NO_WORKERS = re.compile("(needs|has no) worker processes")

LOOP = """%%workbench runs/mine
import time, torch
weights = torch.ones(8, requires_grad=True)
for batch in cap.watch([torch.ones(8)] * 400):
    time.sleep(0.01)
    (batch * weights).sum().backward()
    cap.step()
raise LookupError("at the end of the cell")
"""


def test_a_loop_of_ones_own_is_shown_while_its_cell_runs(notebook: Notebook, page: Page):
    notebook.open("magic.ipynb", ["%load_ext workbench", LOOP])
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    status = page.locator(".wb-status")
    expect(status).to_contain_text("Your own loop runs.", timeout=PAST_MS)
    expect(page.locator(".wb-switches")).to_be_hidden()
    steps = page.locator(".wb-counters dd").first
    seen = steps.inner_text()
    expect(steps).not_to_have_text(seen, timeout=PAST_MS)
    expect(page.get_by_text("A step takes 1")).to_be_visible()  # 10 ms of sleep, and the step

    expect(status).to_contain_text("Your loop has ended", timeout=PAST_MS)
    expect(page.locator(".jp-OutputArea-output", has_text="LookupError").first).to_be_visible()
    assert notebook.ask("cap.run.steps is not None") == "True"
    assert notebook.outside_requests == []
    assert notebook.console_errors == []
