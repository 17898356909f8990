"""The switches' script in a bare page: what it does while the kernel does not answer."""

import base64
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.contrast import contrast
from workbench import widgets
from workbench.pages.script import joined
from workbench.widgets.controls import controls

HERE = Path(widgets.__file__).parent
STATE = {"values": {}, "effective": {}, "summary": "as it is", "error": None, "ticket": None}

SET_UP = """async ([script, controls, state]) => {
  const { default: { render } } = await import(`data:text/javascript;base64,${script}`);
  const traits = { _controls: controls, _state: state };
  window.sent = [];
  window.callbacks = new Set();
  const model = {
    get: (name) => traits[name],
    on: (_name, callback) => window.callbacks.add(callback),
    off: (_name, callback) => window.callbacks.delete(callback),
    send: (content) => window.sent.push(content),
  };
  window.answer = (change) => {
    traits._state = { ...traits._state, ...change };
    window.callbacks.forEach((callback) => callback());
  };
  window.cleanUp = render({ model, el: document.body });
}"""


@pytest.fixture
def form(page: Page) -> Page:
    """A page that holds the form and a kernel that answers when the test says so."""
    page.set_content("<html><body></body></html>")
    page.add_style_tag(content=(HERE / "switches.css").read_text(encoding="utf-8"))
    script = base64.b64encode(joined(HERE / "switches.js").encode()).decode()
    page.evaluate(SET_UP, [script, [one.to_json() for one in controls()], STATE])
    return page


def test_a_form_without_an_answer_says_that_it_waits(form: Page):
    form.get_by_label("Batch size").fill("64")
    expect(form.get_by_role("status")).to_have_text(
        "Waiting for the kernel, which is busy or gone."
    )

    form.evaluate("() => answer({ ticket: sent.at(-1).ticket, summary: 'batch_size=64' })")
    expect(form.get_by_role("status")).to_have_text("Next run: batch_size=64")


def test_a_late_answer_does_not_undo_what_was_typed_since(form: Page):
    form.get_by_label("Batch size").fill("6")
    form.get_by_label("Batch size").fill("64")
    form.evaluate("() => answer({ ticket: sent[0].ticket, values: { batch_size: 6 } })")

    expect(form.get_by_label("Batch size")).to_have_value("64")


def test_the_form_sends_every_setting_and_null_for_as_yours(form: Page):
    form.get_by_label("torch.compile").select_option("off")
    sent = form.evaluate("() => sent.at(-1).values")

    assert sent.pop("compile") is False
    assert set(sent.values()) == {None}
    assert len(sent) == len(controls()) - 1


def test_words_numbers_and_lists_arrive_as_what_the_record_takes(form: Page):
    form.get_by_label("Clip gradient norm").fill("0.5")
    form.get_by_label("Activation checkpointing").fill("Block, layers.0 ,")
    form.get_by_label("CPU affinity").fill("0, 1,x")
    form.get_by_label("torch.compile").select_option("max-autotune")
    form.get_by_label("Device").fill("cpu")
    sent = form.evaluate("() => sent.at(-1).values")

    assert sent["clip_norm"] == 0.5
    assert sent["checkpointing"] == ["Block", "layers.0"]
    assert sent["cpu_affinity"] == [0, 1, "x"]  # the record says what is wrong with it
    assert sent["compile"] == "max-autotune"
    assert sent["device"] == "cpu"


def test_values_of_every_kind_are_shown(form: Page):
    values = {"compile": True, "cpu_affinity": [0, 1], "checkpointing": ["Block"], "clip_norm": 1.5}
    form.evaluate("(values) => answer({ values })", values)

    expect(form.get_by_label("torch.compile")).to_have_value("default")
    expect(form.get_by_label("CPU affinity")).to_have_value("0, 1")
    expect(form.get_by_label("Activation checkpointing")).to_have_value("Block")
    expect(form.get_by_label("Clip gradient norm")).to_have_value("1.5")


def test_the_clean_up_leaves_nothing_behind(form: Page):
    form.get_by_label("Batch size").fill("64")
    form.evaluate("() => cleanUp()")

    assert form.evaluate("() => callbacks.size") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible_outside_jupyter(form: Page, scheme: str):
    form.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]

    for part in (form.get_by_label("Batch size"), form.get_by_text("samples per batch")):
        assert contrast(part) >= 4.5  # WCAG 2.1, level AA
