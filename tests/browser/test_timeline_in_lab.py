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
    "run.timeline(static=True)",
]


@pytest.fixture(scope="module")
def opened(shared: Notebook) -> Notebook:
    loop.kineto().write(shared.server.folder / "timeline.json.gz")
    shared.open("timeline.ipynb", CELLS)
    shared.run_all()
    return shared


@pytest.fixture
def lanes(opened: Notebook) -> Locator:
    """Of the widget, whose cell stands before that of the page without a kernel."""
    lanes = opened.page.locator(".jp-OutputArea .wbt-lanes").first
    expect(lanes).to_be_visible(timeout=30_000)
    return lanes


def painted(lanes: Locator) -> int:
    return int(lanes.evaluate("(one) => one.closest('.wbt').dataset.painted ?? 0"))


def test_what_is_selected_in_the_page_is_a_value_in_the_kernel(opened: Notebook, lanes: Locator):
    page = opened.page.locator(".wbt").first
    expect(page.get_by_role("button", name="Step", exact=True)).to_be_visible()
    lanes.focus()
    before = painted(lanes)
    lanes.press("w")
    lanes.press("0")
    opened.page.wait_for_function(
        "(before) => +document.querySelector('.wbt').dataset.painted > before", arg=before
    )
    page.get_by_label("Search names").fill("sgemm")
    expect(page.locator(".wbt-count")).to_have_text("2 matches")
    page.get_by_label("Search names").press("Enter")
    expect(page.locator(".wbt-panel")).to_contain_text("500 µs")
    named = "timeline.selection.name, timeline.selection.start_us, timeline.selection.end_us"
    assert opened.ask(named) == "('sgemm_128x64', 460.0, 960.0)"

    opened.ask("timeline.go_to(860, 1560)")
    expect(page.locator(".wbt-panel")).to_contain_text("700 µs selected")
    expect(page.locator(".wbt-panel")).to_contain_text("From the whole trace, in the kernel")
    told = "[p['ns'] for p in timeline.summary()['breakdowns'][0]['parts'][:2]]"
    assert opened.ask(told) == "[200000, 400000]"  # kernels, then the wait for input

    assert complaints_of(opened.page, ".wbt") == []
    assert opened.outside_requests == []
    assert opened.console_errors == []


def test_the_page_without_a_kernel_draws_itself_in_output_that_is_trusted(opened: Notebook):
    still = opened.page.locator(".jp-OutputArea [data-wb-timeline=drawn]")
    expect(still).to_be_visible(timeout=30_000)
    expect(still.locator(".wbt-plain")).to_be_hidden()
    still.get_by_label("Search names").fill("sgemm")
    expect(still.locator(".wbt-count")).to_have_text("2 matches")
    assert opened.outside_requests == []
    assert opened.console_errors == []


def test_a_notebook_that_is_not_trusted_shows_the_overview(
    opened: Notebook, notebook: Notebook, lanes: Locator
):
    """Lab takes the scripts out of foreign output; the table with its pictures stays."""
    opened.command("docmanager:save")
    file = notebook.server.folder / "timeline.ipynb"
    saved = json.loads(file.read_text(encoding="utf-8"))
    saved["cells"] = saved["cells"][:1]
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
