"""The panel's script in a bare page: states, keyboard, accessibility, and a silent kernel."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import complaints_of
from tests.browser.contrast import contrast
from tests.browser.panel_page import Bench
from tests.run.test_compare import measured
from tests.widgets.kernel import FINDING
from tests.widgets.standin import StandIn, change, done, effect, last_ns, recorded, train
from workbench.settings import Settings
from workbench.workload.capability import Offer

LEFT = "The rest of the epoch was left out."
EVIL = '<img src=x onerror="window.pwned=1">'


@pytest.fixture
def bench(page: Page, tmp_path: Path) -> Any:
    session = StandIn()
    session.offered = (
        Offer(field="pin_memory", values=(True,), state="refused", reason="no accelerator"),
        Offer(field="precision", values=("fp8",), state="refused", reason="no fp8 here"),
        Offer(field="precision", values=("bf16",), state="harmful", reason="2.1 times slower"),
    )
    made = Bench(page, session, tmp_path)
    yield made
    made.panel.close()
    assert made.errors == []


def busy(bench: Bench) -> None:
    """A training with a change of a switch, a burst with a finding, and a finished trial."""
    session = bench.session
    train(session, 300)
    settings = Settings(workers=2)
    at = last_ns(session)
    told = effect(0.69, 0.66, 0.72)
    session.changes = (
        change(
            1,
            300,
            Settings(),
            settings,
            effect=told,
            before_ns=20e6,
            after_ns=13.8e6,
            applied_ns=at,
            note=LEFT,
        ),
    )
    train(session, 300, first=300, step_ms=13.8, input_share=0.1)
    run = recorded("digits-burst")
    session.become(
        bursts=(done(run, FINDING),), status="running", doing="Training.", settings=settings
    )
    bench.settle()


def button(bench: Bench, name: str) -> Any:
    return bench.page.get_by_role("button", name=name, exact=True)


def test_buttons_are_enabled_only_where_they_act(bench: Bench):
    expect(button(bench, "Start")).to_be_enabled()
    expect(button(bench, "Pause")).to_be_disabled()
    expect(button(bench, "Record a burst")).to_be_disabled()

    button(bench, "Start").click()
    bench.settle()
    expect(bench.page.get_by_role("status").first).to_contain_text("Running")
    expect(button(bench, "Pause")).to_be_enabled()
    assert bench.session.asked[-1] == ("start",)

    button(bench, "Stop…").click()
    button(bench, "Keep the trained weights").click()
    bench.settle()
    assert bench.session.asked[-1] == ("stop", True)
    expect(bench.page.get_by_role("status").first).to_contain_text("Stopped")


def test_a_switch_sends_itself_and_waits_for_its_step(bench: Bench):
    button(bench, "Start").click()
    bench.settle()
    bench.page.get_by_label("fp32 products").select_option("high")
    bench.settle()

    assert bench.session.asked[-1] == ("replace", Settings(matmul_precision="high"))
    row = bench.page.locator(".wb-switch", has=bench.page.get_by_label("fp32 products"))
    expect(row).to_contain_text("pending until the next step")
    bench.session.become(settings=Settings(matmul_precision="high"), pending=None)
    bench.settle()
    expect(row).not_to_contain_text("pending")
    expect(bench.page.get_by_label("fp32 products")).to_have_value("high")


def test_a_refused_combination_is_said_at_its_switch_and_taken_back(bench: Bench):
    bench.page.get_by_text("Loader", exact=True).click()
    bench.page.get_by_label("Loader workers").fill("0")
    bench.page.get_by_label("Loader workers").press("Tab")
    bench.settle()
    bench.page.get_by_label("Prefetch factor").fill("2")
    bench.page.get_by_label("Prefetch factor").press("Tab")
    bench.settle()

    row = bench.page.locator(".wb-switch", has=bench.page.get_by_label("Prefetch factor"))
    expect(row.get_by_role("alert")).to_contain_text("needs worker processes")
    expect(bench.page.get_by_label("Prefetch factor")).to_have_value("")


def test_what_cannot_act_here_is_disabled_with_its_reason(bench: Bench):
    bench.page.get_by_text("Loader", exact=True).click()

    expect(bench.page.get_by_label("Pinned memory")).to_be_disabled()
    row = bench.page.locator(".wb-switch", has=bench.page.get_by_label("Pinned memory"))
    expect(row).to_contain_text("not possible: no accelerator")
    fp8 = bench.page.get_by_label("Precision", exact=True).locator("option[value=fp8]")
    expect(fp8).to_be_disabled()
    bench.page.locator(".wb-groups summary", has_text="Parallelism").click()
    expect(bench.page.get_by_text("wb.profile(work, wb.Settings(parallel=...))")).to_be_visible()


def test_charts_say_what_they_show_and_have_a_table(bench: Bench):
    busy(bench)

    expect(bench.page.get_by_text("A step takes 1")).to_be_visible()
    expect(bench.page.get_by_text("of a step waits for data")).to_be_visible()
    expect(bench.page.get_by_text("GPU: not measured")).to_be_visible()
    bench.page.get_by_text("The numbers as a table").click()
    bench.settle()
    expect(bench.page.get_by_role("row", name="Use of the machine: GPU")).to_contain_text(
        "not measured"
    )
    drawn = bench.page.evaluate(
        """() => [...document.querySelectorAll("canvas")].map((c) => {
          const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
          let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })"""
    )
    assert all(count > 500 for count in drawn)


def test_titles_speak_of_the_settings_in_force(bench: Bench):
    busy(bench)

    # 300 steps of 20 ms, 40 % of it waiting; then workers: 300 of 13.8 ms, 10 % of it waiting.
    expect(bench.page.get_by_text("A step takes 13.")).to_be_visible()
    expect(bench.page.get_by_text("median of 300 steps in view since change 1")).to_be_visible()
    expect(bench.page.get_by_text("share of the time of 300 steps")).to_be_visible()
    settings = Settings(workers=2)
    undone = change(2, 600, settings, Settings(), applied_ns=last_ns(bench.session))
    bench.session.changes = (*bench.session.changes, undone)
    bench.session.become(settings=Settings())
    bench.settle()
    expect(bench.page.get_by_text("steps in view under earlier settings").first).to_be_visible()
    expect(bench.page.get_by_text("Recorded under other settings")).to_have_count(0)


def test_a_finding_of_other_settings_and_the_note_on_a_change_are_shown(bench: Bench):
    busy(bench)

    told = "than those in force now (workers 2)"
    expect(bench.page.get_by_text(told)).to_be_visible()
    expect(bench.page.get_by_text("The rest of the epoch was left out.")).to_be_visible()


def test_an_interval_that_is_none_is_said_and_not_swallowed(bench: Bench):
    every = bench.page.get_by_label("burst every")
    every.fill("-3")
    every.press("Tab")
    bench.settle()

    expect(bench.page.get_by_text("give a number above 0")).to_be_visible()
    assert bench.session.burst_every_s is None


def test_charts_are_paused_zoomed_and_read_by_keyboard(bench: Bench):
    busy(bench)
    figure = bench.page.get_by_role("group", name="A step takes")
    figure.focus()
    bench.page.keyboard.press("ArrowLeft")
    expect(figure).to_contain_text("step")
    expect(figure).to_contain_text("at 0:")

    bench.page.keyboard.press("Space")
    expect(button(bench, "Follow again")).to_be_visible()
    train(bench.session, 100, first=600)
    bench.settle()
    before = figure.inner_text()
    bench.page.keyboard.press("+")
    bench.page.wait_for_timeout(300)
    assert figure.inner_text() != before or "at 0:" in before
    bench.page.keyboard.press("0")
    expect(button(bench, "Pause charts")).to_be_visible()


def test_dragging_zooms_in(bench: Bench):
    busy(bench)
    canvas = bench.page.locator("canvas").first
    box = canvas.bounding_box()
    assert box
    bench.page.mouse.move(box["x"] + 300, box["y"] + 60)
    bench.page.mouse.down()
    bench.page.mouse.move(box["x"] + 400, box["y"] + 60, steps=4)
    bench.page.mouse.up()

    expect(button(bench, "Follow again")).to_be_visible()


def test_findings_come_with_evidence_and_try_it_ends_in_a_verdict(bench: Bench):
    busy(bench)
    page = bench.page
    page.get_by_text("Evidence, WB101").click()
    expect(page.get_by_text("39 %", exact=True)).to_be_visible()
    page.get_by_role("button", name="Try it").click()
    bench.settle()
    expect(page.get_by_text("Trying workers 2…")).to_be_visible()

    trial = bench.session.state.trial
    trial.status = "done"
    trial.verification = SimpleNamespace(
        sentence="▲ workers=2: 31 % (28–34) less time a step: keep it.",
        advice="keep",
        change=effect(0.69, 0.66, 0.72),
        parity=SimpleNamespace(reason="the losses agree"),
        bound=None,
        settings=Settings(workers=2),
    )
    bench.session.become()
    bench.settle()
    expect(page.get_by_text("31 % (28–34) less time a step: keep it")).to_be_visible()
    button(bench, "Keep it").click()
    bench.settle()
    expect(page.get_by_text("Kept: it was put in force.")).to_be_visible()
    assert bench.session.asked[-1] == ("apply", Settings(workers=2))


def test_errors_are_shown_in_the_status_line(bench: Bench):
    bench.session.fail = ZeroDivisionError("in a handler")
    button(bench, "Start").click()
    bench.settle()
    expect(bench.page.get_by_text("ZeroDivisionError: in a handler")).to_be_visible()
    bench.session.fail = None

    bench.session.become(
        status="failed", doing="The training failed.", error="boom.", remedy="Mend it."
    )
    bench.settle()
    expect(bench.page.get_by_role("alert").first).to_have_text("✕ boom. Mend it.")


def test_a_kernel_that_does_not_answer_disables_what_cannot_act(bench: Bench):
    page = bench.page
    button(bench, "Start").click()
    bench.settle()
    page.evaluate("() => { window.deaf = true; }")
    button(bench, "Pause").click()

    expect(page.get_by_text("Kernel busy")).to_be_visible(timeout=3000)
    expect(button(bench, "Pause")).to_be_disabled()
    expect(page.get_by_text("Disconnected", exact=True)).to_be_visible(timeout=9000)
    expect(page.get_by_label("Precision", exact=True)).to_be_disabled()
    page.evaluate("() => { window.deaf = false; }")
    page.wait_for_timeout(2600)
    bench.settle()
    expect(page.get_by_text("Disconnected", exact=True)).to_have_count(0)
    expect(
        page.get_by_text("The last click did not reach the kernel: press again.")
    ).to_be_visible()
    expect(page.locator(".wb-status strong")).to_have_text("Running")


def test_a_page_that_is_drawn_again_shows_the_same(bench: Bench):
    busy(bench)
    bench.page.evaluate("() => { cleanUp(); document.querySelector('main').replaceChildren(); }")
    assert bench.page.evaluate("callbacks.size") == 1  # the model's own, which keeps what comes
    bench.page.evaluate("() => { window.cleanUp = show(); }")
    bench.settle()

    expect(bench.page.get_by_text("A step takes 1")).to_be_visible()
    expect(bench.page.get_by_role("cell", name="workers as yours → 2")).to_be_visible()


def test_names_from_elsewhere_are_only_ever_text(page: Page, tmp_path: Path):
    session = StandIn()
    bench = Bench(page, session, tmp_path / EVIL.replace("/", ""))
    bench.desk.title = EVIL
    run = recorded(EVIL)
    evil = replace(
        FINDING, title=EVIL, advice=EVIL, evidence={EVIL: EVIL}, setting={"device": EVIL}
    )
    session.become(bursts=(done(run, evil),))
    session.changes = (change(1, 1, Settings(), Settings(checkpointing=(EVIL,)), error=EVIL),)
    session.become(doing=EVIL, error=EVIL, settings=Settings(checkpointing=(EVIL,)))
    bench.settle()
    bench.panel.close()

    expect(page.locator("img")).to_have_count(0)
    assert page.evaluate("window.pwned") is None
    expect(page.get_by_text(EVIL).first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_text_is_legible(bench: Bench, scheme: str):
    bench.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    busy(bench)
    for summary in bench.page.locator("summary").all():
        if summary.is_visible():
            summary.click()
    bench.settle()

    assert complaints_of(bench.page, within=".wb-panel") == []
    bench.settle()  # a kernel that was not heard meanwhile has its buttons greyed
    for part in (bench.page.get_by_text("GPU: not measured"), button(bench, "Pause")):
        assert contrast(part) >= 4.5  # WCAG 2.1, level AA


CUT_OFF = """() => {
  const panel = document.querySelector(".wb-panel").getBoundingClientRect();
  const parts = document.querySelectorAll(".wb-panel :is(button, select, input, th, td)");
  return [...parts].map((one) => [one.textContent, one.getBoundingClientRect()])
    .filter(([, box]) => box.width > 1)
    .filter(([, box]) => box.right > panel.right + 1 || box.left < panel.left - 1)
    .map(([text]) => text);
}"""
"""Also what could be scrolled to: nobody knows that it is there."""


@pytest.mark.parametrize("width", [320, 420, 800, 1100, 1400, 1900])
def test_nothing_is_cut_off_at_any_width(bench: Bench, width: int, tmp_path: Path):
    measured(tmp_path, "a-run-of-the-last-evening", step_ms=20)
    bench.page.set_viewport_size({"width": width, "height": 800})
    bench.panel.refresh()
    busy(bench)
    expect(bench.page.get_by_role("button", name="Compare a-run")).to_be_visible()

    assert bench.page.evaluate("document.documentElement.scrollWidth") <= width
    assert bench.page.evaluate(CUT_OFF) == []
