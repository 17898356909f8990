"""The static timeline in a real browser: from a file, the network off, with and without scripts."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.axe import complaints_of
from tests.browser.contrast import contrast
from tests.pages.timeline import loop

HOSTILE = "</script><img src=x onerror='window.hacked = 1'>"
MORE = "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='color-scheme' "
PAGE = MORE + "content='light dark'><title>A timeline</title><body><main><h1>Loop</h1>{}</main>"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("timeline")
    made = loop.kineto()
    made.range(HOSTILE, 1700, 50)
    run = loop.opened(made, folder)
    file = folder / "timeline.html"
    file.write_text(PAGE.format(run.timeline(static=True).html()), encoding="utf-8")  # type: ignore[union-attr]
    return file


class Visit:
    """A page with one timeline, that remembers what it asked for and complained about."""

    def __init__(self, context: BrowserContext, path: Path) -> None:
        context.set_offline(True)
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.goto(path.as_uri())

    @property
    def status(self) -> Locator:
        return self.page.locator(".wbt-status")

    def drawn(self) -> "Visit":
        expect(self.page.locator("[data-wb-timeline=drawn]")).to_have_count(1)
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until what was asked for is painted."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def lane(self, name: str) -> tuple[float, float]:
        """Where a lane lies on the canvas: its left edge, the middle of its first row."""
        label = self.page.locator(".wbt-name", has_text=name).first.bounding_box()
        canvas = self.page.locator(".wbt-lanes").bounding_box()
        assert label
        assert canvas
        return canvas["x"], label["y"] + 9

    def at(self, us: float) -> float:
        """Where an instant lies on the canvas while everything is shown."""
        box = self.page.locator(".wbt-lanes").bounding_box()
        assert box
        return us / 2000 * box["width"]  # the trace lasts 2000 µs

    def click(self, name: str, us: float) -> None:
        left, y = self.lane(name)
        self.page.mouse.click(left + self.at(us), y)

    def drag(self, name: str, low: float, high: float, key: str) -> None:
        left, y = self.lane(name)
        self.page.keyboard.down(key)
        self.page.mouse.move(left + self.at(low), y)
        self.page.mouse.down()
        self.page.mouse.move(left + self.at((low + high) / 2), y + 30)
        self.page.mouse.move(left + self.at(high), y + 30)
        self.page.mouse.up()
        self.page.keyboard.up(key)


Open = Callable[..., Visit]


@pytest.fixture
def visit(new_context: Callable[..., BrowserContext], written: Path) -> Open:
    return lambda **options: Visit(new_context(**options), written)


def pixel(seen: Visit, name: str, us: float) -> list[int]:
    """Colour and opacity of the canvas at an instant of a lane."""
    _, y = seen.lane(name)
    box = seen.page.locator(".wbt-lanes").bounding_box()
    assert box
    return seen.page.evaluate(
        """([x, y]) => {
          const canvas = document.querySelector(".wbt-lanes");
          const ratio = canvas.width / canvas.clientWidth;
          const data = canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data;
          return [...data];
        }""",
        [seen.at(us), y - box["y"]],
    )


def test_work_and_waiting_are_drawn_where_they_are(visit: Open):
    seen = visit().drawn()
    assert seen.complaints == []
    assert [url for url in seen.asked if not url.startswith(("file:", "blob:", "data:"))] == []
    red, green, blue, opacity = pixel(seen, "stream 7", 800)
    assert opacity == 255
    assert blue > 140 > red, "compute is blue"
    assert blue > green
    amber = pixel(seen, "idle, by cause", 1200)
    assert amber[0] > 180 > amber[2], "waiting for input is amber"
    assert pixel(seen, "stream 9", 500)[3] == 0, "nothing ran there"


def test_a_click_tells_what_it_is_and_what_it_hangs_together_with(visit: Open):
    seen = visit().drawn()
    seen.click("stream 7", 700)
    panel = seen.page.locator(".wbt-panel")
    expect(panel).to_contain_text("sgemm_128x64")
    expect(panel).to_contain_text("500 µs")
    expect(panel).to_contain_text("step 0")
    expect(panel.get_by_role("button", name="cudaLaunchKernel")).to_be_visible()
    panel.get_by_role("button", name="aten::addmm").click()
    expect(panel).to_contain_text("[[8,4],[4,2]]")
    expect(panel).to_contain_text("Launches")
    expect(seen.status).to_contain_text("aten::addmm, 60.0 µs")

    seen.page.keyboard.press("Tab")
    seen.page.locator(".wbt-lanes").focus()
    seen.page.keyboard.press("0")
    seen.click("idle, by cause", 1200)
    expect(panel).to_contain_text("the device waits for data")
    expect(panel).to_contain_text("Ended by")


def test_a_stretch_is_summed_in_the_page(visit: Open):
    seen = visit().drawn()
    seen.drag("stream 7", 860, 1560, "Shift")
    panel = seen.page.locator(".wbt-panel")
    expect(panel).to_contain_text("selected")
    expect(panel).to_contain_text("From what this page holds")
    shares = panel.locator("tr", has_text="input")
    expect(shares).to_contain_text("400 µs")
    expect(panel.locator("tr", has_text="sgemm_128x64")).to_contain_text("2")
    expect(seen.status).to_contain_text("most of it idle: input (57 %)")
    seen.page.locator(".wbt-lanes").press("Escape")
    expect(panel.locator("table")).to_have_count(0)


def test_keys_zoom_move_and_search(visit: Open):
    seen = visit().drawn()
    lanes = seen.page.locator(".wbt-lanes")
    lanes.focus()
    before = pixel(seen, "stream 9", 1980)
    for key in "wwwaa":
        lanes.press(key)
    seen.settle()
    assert pixel(seen, "stream 9", 1980) != before, "the copy is no longer where it was"
    lanes.press("0")
    seen.settle()
    assert pixel(seen, "stream 9", 1980) == before
    lanes.press("/")
    box = seen.page.get_by_label("Search names")
    expect(box).to_be_focused()
    box.fill("SGEMM 64")
    expect(seen.page.locator(".wbt-count")).to_have_text("2 matches")
    box.press("Enter")
    box.press("Enter")
    expect(seen.page.locator(".wbt-count")).to_have_text("2 of 2 matches")
    expect(seen.page.locator(".wbt-panel")).to_contain_text("sgemm_128x64")
    box.fill("no such name")
    expect(seen.page.locator(".wbt-count")).to_have_text("0 matches")
    box.press("Escape")
    expect(lanes).to_be_focused()


def test_a_box_zooms_and_a_step_fits(visit: Open):
    seen = visit().drawn()
    assert pixel(seen, "stream 7", 1250)[:3] != pixel(seen, "stream 7", 800)[:3]
    seen.drag("stream 7", 500, 900, "Alt")
    seen.settle()
    assert pixel(seen, "stream 7", 1250)[3] == 255, "the kernel fills the whole width"
    seen.page.get_by_role("button", name="All", exact=True).click()
    seen.page.get_by_role("button", name="Step", exact=True).click()
    expect(seen.status).to_contain_text("step 1: 1.00 ms")


def test_names_from_the_trace_run_nothing(visit: Open):
    seen = visit().drawn()
    seen.page.get_by_label("Search names").fill("onerror")
    seen.page.get_by_label("Search names").press("Enter")
    expect(seen.page.locator(".wbt-panel strong")).to_have_text(HOSTILE)
    assert seen.page.evaluate("window.hacked") is None


def test_the_lanes_are_a_table_too(visit: Open):
    seen = visit().drawn()
    seen.page.get_by_text("The lanes as a table").click()
    row = seen.page.locator(".wbt-scroll tr", has_text="stream 7")
    expect(row).to_contain_text("1.00 ms")


def test_without_scripts_there_are_pictures_and_words(visit: Open):
    seen = visit(java_script_enabled=False)
    expect(seen.page.locator(".wbt-plain img")).to_have_count(5)
    expect(seen.page.get_by_text("waits").or_(seen.page.get_by_text("input")).first).to_be_visible()
    assert seen.complaints == []


def test_a_browser_that_cannot_unpack_keeps_the_overview(
    new_context: Callable[..., BrowserContext], written: Path
):
    context = new_context()
    context.add_init_script("delete window.DecompressionStream")
    page = Visit(context, written).page
    expect(page.locator("[data-wb-timeline=failed]")).to_have_count(1)
    expect(page.locator(".wbt-plain img").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_in_both_themes(visit: Open, scheme: str):
    seen = visit(color_scheme=scheme).drawn()
    seen.drag("stream 7", 860, 1560, "Shift")
    seen.page.get_by_text("The lanes as a table").click()
    seen.page.get_by_text("Keys", exact=True).click()
    assert complaints_of(seen.page) == []
    for part in seen.page.locator(".wbt :is(p, td, th, dt, dd, button, summary, li)").all()[::6]:
        if part.is_visible():
            assert contrast(part) >= 4.5


def test_a_narrow_page_needs_no_scrolling_sideways(visit: Open):
    seen = visit(viewport={"width": 400, "height": 800}).drawn()
    seen.drag("stream 7", 860, 1560, "Shift")
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 400


def test_threads_are_told_apart_where_it_is_narrow(visit: Open):
    """Two names that begin alike would both be cut to the word that all threads share."""
    seen = visit(viewport={"width": 400, "height": 800}).drawn()
    named = seen.page.locator(".wbt-name", has_text="thread ")
    assert named.count()
    for each in named.all():
        assert not each.inner_text().strip().startswith("thread")
        assert (each.text_content() or "").startswith("thread ")
    wide = visit(viewport={"width": 1200, "height": 800}).drawn()
    assert (
        wide.page.locator(".wbt-name", has_text="thread ").first.inner_text().startswith("thread")
    )
