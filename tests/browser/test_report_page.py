"""The exported report in a real browser: from a file, the network off, with and without scripts."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.analysis.jobs import job_trace
from tests.browser.axe import complaints_of
from tests.browser.contrast import contrast
from tests.reporting import sample
from workbench.reporting import report
from workbench.reporting.pdf import print_pdf

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
CHARTS = 17
"""Comparison and the kernels that differ; breakdown, steps, input, idle, kernels, operators; folded
away the four of the loader, the waterfall, the steps by parts, the queue, the critical path and
what changes save at most."""
OPEN_FOLDS = "document.querySelectorAll('.wb-folded').forEach((fold) => { fold.open = true; })"
FITTING = """() => [...document.querySelectorAll(".wb-plot")].every(
    (plot) => plot.clientWidth === +plot.querySelector("svg").getAttribute("width"))"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report over a measured Run, compared with another, with a hostile kernel name."""
    folder = tmp_path_factory.mktemp("report")
    before = sample.measured_run(folder, "before", step_ms=1.7)
    after = sample.measured_run(folder, "after", step_ms=1.2, kernel=HOSTILE, loader=True)
    return report(after, folder / "report.html", baseline=before)


class Visit:
    """A page that remembers what it asked for and complained about."""

    def __init__(self, context: BrowserContext, path: Path) -> None:
        context.set_offline(True)
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.goto(path.as_uri())

    def drawn(self) -> "Visit":
        """Unfold everything and wait until every chart is there."""
        self.page.evaluate(OPEN_FOLDS)
        expect(self.page.locator("[data-wb-figure=drawn]")).to_have_count(CHARTS, timeout=30_000)
        return self


Open = Callable[..., Visit]


@pytest.fixture
def visit(new_context: Callable[..., BrowserContext], written: Path) -> Open:
    return lambda **options: Visit(new_context(**options), written)


def test_every_chart_and_table_shows_without_a_network(visit: Open, written: Path):
    seen = visit().drawn()
    for figure in seen.page.locator("[data-wb-figure]").all():
        expect(figure.locator("svg.main-svg").first).to_be_visible()
        expect(figure.locator("details table")).to_have_count(1)
    expect(seen.page.locator("[data-wb-timeline=drawn] canvas.wbt-lanes")).to_have_count(1)
    assert seen.complaints == []
    assert [url for url in seen.asked if not url.startswith("blob:")] == [written.as_uri()]


def test_a_chart_folds_its_table_away_and_one_click_opens_it(visit: Open):
    seen = visit().drawn()
    figure = seen.page.locator("[data-wb-figure]").first
    expect(figure.locator("table")).to_be_hidden()
    figure.get_by_text("The numbers as a table").click()
    expect(figure.locator("table")).to_be_visible()


def test_every_chart_has_words(visit: Open):
    for plot in visit().drawn().page.locator(".wb-plot[role=img]").all():
        assert len(plot.get_attribute("aria-label") or "") > 40


def test_names_from_the_trace_run_nothing(visit: Open):
    seen = visit().drawn()
    assert seen.page.evaluate("window.hacked") is None
    assert seen.page.locator("main img:not([src^='data:image/png'])").count() == 0


def test_what_is_folded_away_is_one_click_from_being_drawn(
    new_context: Callable[..., BrowserContext], written: Path
):
    page = Visit(new_context(), written).page
    fold = page.locator(".wb-folded").filter(has=page.locator(".wb-plot")).first
    expect(fold.locator("svg.main-svg").first).to_be_hidden()
    fold.locator("summary").first.click()
    expect(fold.locator("svg.main-svg").first).to_be_visible(timeout=30_000)


def test_tooltip_is_exact(visit: Open):
    seen = visit().drawn()
    figure = seen.page.locator("[data-wb-figure]").filter(has_text="waits 50 % of the step")
    bar = figure.locator(".barlayer .point").first
    box = bar.bounding_box()
    assert box
    bar.scroll_into_view_if_needed()
    bar.hover(force=True)
    expect(figure.locator(".hoverlayer")).to_contain_text("3.50 ms (3\u2009500\u2009000 ns)")


def test_without_scripts_every_number_is_in_the_text(visit: Open):
    seen = visit(java_script_enabled=False)
    for text in ("▲ after is faster than before", "A step takes 1.20 ms", "mostly for data"):
        expect(seen.page.get_by_text(text).first).to_be_visible()
    for table in seen.page.locator(".wb > [data-wb-figure] table").all():
        expect(table).to_be_visible()
    seen.page.locator(".wb-folded > summary").first.click()
    for table in seen.page.locator(".wb-folded").first.locator("table").all():
        expect(table).to_be_visible()


def test_a_browser_that_cannot_unpack_keeps_the_tables_open(
    new_context: Callable[..., BrowserContext], written: Path
):
    context = new_context()
    context.add_init_script("delete window.DecompressionStream")
    page = Visit(context, written).page
    expect(page.get_by_text("cannot be drawn in this browser")).to_be_visible()
    expect(page.locator("[data-wb-figure] table").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible(visit: Open, scheme: str):
    seen = visit(color_scheme=scheme).drawn()
    ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 17, 17)"}[scheme]
    words = seen.page.locator("main :is(p, h1, h3, summary, figcaption, td, th, dt, dd, footer)")
    for part in words.all()[::7]:
        assert contrast(part) >= 4.5
    inks = seen.page.evaluate(
        """() => [...document.querySelectorAll(".wb-plot .main-svg text:not(.bartext-inside)")]
                 .map((text) => getComputedStyle(text).fill)"""
    )
    assert set(inks) == {{"light": "rgb(31, 31, 31)", "dark": "rgb(232, 232, 232)"}[scheme]}


def test_switching_the_theme_while_the_page_is_open(visit: Open):
    seen = visit(color_scheme="light").drawn()
    seen.page.emulate_media(color_scheme="dark")
    ink: Any = seen.page.evaluate(
        "getComputedStyle(document.querySelector('.wb-plot .main-svg .xtick text')).fill"
    )
    assert ink == "rgb(232, 232, 232)"


@pytest.mark.parametrize("width", [480, 1280])
def test_charts_are_as_wide_as_their_column(visit: Open, width: int):
    seen = visit(viewport={"width": width, "height": 800}).drawn()
    seen.page.wait_for_function(FITTING, timeout=10_000)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_narrow_dark_page_keeps_words_whole_and_outlines_its_dots(visit: Open):
    """A name of one short word stands on one line, and a dot has the ink of the text around it."""
    seen = visit(viewport={"width": 420, "height": 900}, color_scheme="dark").drawn()
    seen.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    lines = """(cells) => cells.filter((cell) => /^\\w{1,16}$/.test(cell.textContent.trim()))
        .map((cell) => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            return range.getClientRects().length;
        })"""
    counts = seen.page.locator("td.wb-name:visible").evaluate_all(lines)
    assert counts
    assert set(counts) == {1}
    dot = seen.page.locator(".scatterlayer .points path").first
    ink = seen.page.locator(".wb").first.evaluate("(page) => getComputedStyle(page).color")
    assert dot.evaluate("(path) => getComputedStyle(path).stroke") == ink


ROWS = """(plots) => plots.flatMap((plot) => {
    const edge = plot.querySelector("svg").getBoundingClientRect();
    const notes = plot.layout.annotations ?? [];
    const drawn = [...plot.querySelectorAll(".annotation")].map((note) =>
        [+note.dataset.index, note.querySelector("text").getBoundingClientRect()]);
    const boxes = Object.fromEntries(drawn);
    return notes.map((note, at) => [note, at]).filter(([note]) => note.name === "row-name")
        .map(([, at]) => [boxes[at].left - edge.left, boxes[at + 1].left - boxes[at].right,
                          edge.right - boxes[at + 1].right]);
})"""


@pytest.mark.parametrize("width", [420, 1280])
def test_the_words_of_every_row_are_whole_and_apart(visit: Open, width: int):
    """Also of the kernel whose name is a page of markup: its middle is left out."""
    seen = visit(viewport={"width": width, "height": 900}).drawn()
    seen.page.wait_for_function(FITTING, timeout=10_000)
    rows = seen.page.locator(".wb-plot").evaluate_all(ROWS)
    assert len(rows) > 20
    for left, between, right in rows:
        assert left >= 0
        assert between >= 4
        assert right >= 0
    assert seen.page.evaluate("window.hacked") is None


BESIDE = """(plots) => plots.map((plot) => {
    const words = plot.querySelector("g.legend");
    if (!words) return 0;
    const legend = words.getBoundingClientRect();
    return Math.max(0, ...[...plot.querySelectorAll("g.trace, g.xtick, g.ytick")].map((drawn) => {
        const box = drawn.getBoundingClientRect();
        const wide = Math.min(box.right, legend.right) - Math.max(box.left, legend.left);
        const high = Math.min(box.bottom, legend.bottom) - Math.max(box.top, legend.top);
        return Math.min(wide, high);
    }));
})"""
"""Pixels by which the words for the colours of each chart cover what is drawn."""


@pytest.mark.parametrize("width", [420, 1280])
def test_the_words_for_colours_cover_nothing(visit: Open, width: int):
    seen = visit(viewport={"width": width, "height": 900}).drawn()
    seen.page.wait_for_function(FITTING, timeout=10_000)
    covered = seen.page.locator(".wb-plot").evaluate_all(BESIDE)
    assert len(covered) == CHARTS
    assert max(covered) < 2, covered


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_of_a_run_is_accessible(visit: Open, scheme: str):
    seen = visit(color_scheme=scheme).drawn()
    assert complaints_of(seen.page) == []


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of each other kind."""
    folder = tmp_path_factory.mktemp("kinds")
    before = sample.measured_run(folder, "before", step_ms=1.7)
    after = sample.measured_run(folder, "after", step_ms=1.2, loader=True)
    (folder / "job").mkdir()
    for rank in range(3):
        job_trace(rank, [300, 400, 500]).write(folder / "job" / f"rank{rank}.json")
    return {
        "compare": report(after, folder / "compare.html", base=before),
        "ranks": report(folder / "job", folder / "ranks.html"),
        "loader": report(after, folder / "loader.html", kind="loader"),
    }


@pytest.mark.parametrize("kind", ["compare", "ranks", "loader"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_kind_is_whole_and_accessible(
    new_context: Callable[..., BrowserContext], others: dict[str, Path], kind: str, scheme: str
):
    seen = Visit(new_context(color_scheme=scheme), others[kind])
    seen.page.evaluate(OPEN_FOLDS)
    expect(seen.page.locator("[data-wb-figure=waiting]")).to_have_count(0, timeout=30_000)
    assert seen.page.locator("[data-wb-figure=drawn] svg.main-svg").count() > 3
    expect(seen.page.locator("[data-wb-timeline=drawn] canvas.wbt-lanes")).to_have_count(1)
    assert seen.complaints == []
    assert [url for url in seen.asked if not url.startswith("blob:")] == [others[kind].as_uri()]
    assert complaints_of(seen.page) == []


def test_a_report_is_printed_with_its_charts(written: Path, tmp_path: Path):
    made = print_pdf(written, tmp_path / "report.pdf").read_bytes()
    assert made.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", made)) <= 30
    # Text alone, printed without scripts, is smaller than with charts drawn.
    plain = tmp_path / "plain.html"
    plain.write_text(written.read_text(encoding="utf-8").replace("<script", "<template"))
    bare = print_pdf(plain, tmp_path / "plain.pdf").read_bytes()
    assert len(made) > len(bare)
