"""Results in a live JupyterLab: charts, pages, and no request outside."""

from itertools import pairwise

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Notebook
from tests.reporting import sample

CELLS = [
    "import workbench as wb\nrun = wb.open('loop.json.gz')\nrun",
    "run.figure('breakdown')",
    "run.figure('steps')",
    "run.findings",
]


@pytest.fixture(scope="module")
def opened(shared: Notebook) -> Notebook:
    sample.trace(shared.server.folder / "loop.json.gz")
    shared.open("figures.ipynb", CELLS)
    shared.run_all()
    return shared


def test_charts_are_live_and_pages_are_static(opened: Notebook):
    page = opened.page
    expect(page.locator(".jp-OutputArea .js-plotly-plot")).to_have_count(2, timeout=30_000)
    expect(page.locator(".jp-OutputArea .wb .wb-verdict")).to_be_visible()
    expect(page.locator(".jp-OutputArea .wb-finding").first).to_contain_text("Input-bound")
    assert opened.outside_requests == []


def test_the_hosts_own_table_rules_do_not_reach_a_page(opened: Notebook):
    row = opened.page.locator(".jp-OutputArea .wb-parts tr").first
    expect(row).to_be_visible(timeout=30_000)
    boxes = [cell.bounding_box() or {} for cell in row.locator("td").all()]
    assert all(a["x"] + a["width"] <= b["x"] + 0.5 for a, b in pairwise(boxes))
    name = row.locator("td").first.evaluate("(cell) => getComputedStyle(cell).textAlign")
    assert name == "left"
    assert boxes[1]["width"] > 200, "the bars take the room that the words leave"


def test_pages_follow_the_theme(opened: Notebook):
    verdict = opened.page.locator(".jp-OutputArea .wb .wb-verdict")
    expect(verdict).to_be_visible(timeout=30_000)
    colours = []
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        opened.theme(theme)
        colours.append(verdict.evaluate("(element) => getComputedStyle(element).color"))
    assert colours[0] != colours[1]
