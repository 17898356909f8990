"""The timeline in a real JupyterLab: with its kernel, and in what it leaves in the notebook."""

import json

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.axe import complaints_of
from tests.browser.lab import Notebook
from tests.pages.timeline import loop

CELLS = [
    "import workbench as wb\n"
    "run = wb.open('timeline.json.gz')\n"
    "timeline = run.timeline()\n"
    "timeline",
]


@pytest.fixture
def lanes(notebook: Notebook) -> Locator:
    loop.kineto().write(notebook.server.folder / "timeline.json.gz")
    notebook.open("timeline.ipynb", CELLS)
    notebook.run_all()
    lanes = notebook.page.locator(".jp-OutputArea .wbt-lanes")
    expect(lanes).to_be_visible(timeout=30_000)
    return lanes


def painted(lanes: Locator) -> int:
    return int(lanes.evaluate("(one) => one.closest('.wbt').dataset.painted ?? 0"))


def test_what_is_selected_in_the_page_is_a_value_in_the_kernel(notebook: Notebook, lanes: Locator):
    page = notebook.page
    expect(page.get_by_role("button", name="Step", exact=True)).to_be_visible()
    lanes.focus()
    before = painted(lanes)
    lanes.press("w")
    lanes.press("0")
    page.wait_for_function(
        "(before) => +document.querySelector('.wbt').dataset.painted > before", arg=before
    )
    page.get_by_label("Search names").fill("sgemm")
    expect(page.locator(".wbt-count")).to_have_text("2 matches")
    page.get_by_label("Search names").press("Enter")
    expect(page.locator(".wbt-panel")).to_contain_text("500 µs")
    named = "timeline.selection.name, timeline.selection.start_us, timeline.selection.end_us"
    assert notebook.ask(named) == "('sgemm_128x64', 460.0, 960.0)"

    notebook.ask("timeline.go_to(860, 1560)")
    expect(page.locator(".wbt-panel")).to_contain_text("700 µs selected")
    expect(page.locator(".wbt-panel")).to_contain_text("From the whole trace, in the kernel")
    told = "[p['ns'] for p in timeline.summary()['breakdowns'][0]['parts'][:2]]"
    assert notebook.ask(told) == "[200000, 400000]"  # kernels, then the wait for input

    assert complaints_of(page, ".wbt") == []
    assert notebook.outside_requests == []
    assert notebook.console_errors == []


def test_a_notebook_that_is_not_trusted_shows_the_overview(notebook: Notebook, lanes: Locator):
    """Lab takes the scripts out of foreign output; the table with its pictures stays."""
    notebook.command("docmanager:save")
    file = notebook.server.folder / "timeline.ipynb"
    saved = json.loads(file.read_text(encoding="utf-8"))
    (output,) = saved["cells"][0]["outputs"]
    assert "data-wb-timeline" in "".join(output["data"]["text/html"])
    for cell in saved["cells"]:
        cell["metadata"].pop("trusted", None)
        cell["source"] = "other code, so that nobody has signed it"
        del cell["outputs"][0]["data"]["application/vnd.jupyter.widget-view+json"]
    foreign = notebook.server.folder / "foreign.ipynb"
    foreign.write_text(json.dumps(saved), encoding="utf-8")
    page = notebook.page
    page.goto(f"{notebook.server.url}/lab/tree/foreign.ipynb?token={notebook.server.token}&reset")
    expect(page.locator(".jp-OutputArea img").first).to_be_visible(timeout=30_000)
    expect(page.locator(".jp-OutputArea img")).to_have_count(5)
    expect(page.locator(".jp-OutputArea canvas")).to_have_count(0)
    expect(page.locator(".jp-OutputArea")).to_contain_text("Idle time of devices by cause")
    assert notebook.outside_requests == []


def test_the_page_without_a_kernel_draws_itself_in_output_that_is_trusted(notebook: Notebook):
    loop.kineto().write(notebook.server.folder / "timeline.json.gz")
    first = "import workbench as wb\nrun = wb.open('timeline.json.gz')\n"
    notebook.open("static.ipynb", [first + "run.timeline(static=True)"])
    notebook.run_all()
    page = notebook.page
    expect(page.locator(".jp-OutputArea [data-wb-timeline=drawn]")).to_be_visible(timeout=30_000)
    expect(page.locator(".jp-OutputArea .wbt-plain")).to_be_hidden()
    page.get_by_label("Search names").fill("sgemm")
    expect(page.locator(".wbt-count")).to_have_text("2 matches")
    assert notebook.outside_requests == []
    assert notebook.console_errors == []
