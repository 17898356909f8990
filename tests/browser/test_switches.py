"""The switches in a real JupyterLab."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.contrast import contrast
from tests.browser.lab import Notebook

CELLS = [
    "from workbench.settings import Settings\n"
    "from workbench.widgets import Switches\n"
    "switches = Switches(Settings(workers=4), effective={'batch_size': 32, 'compile': False})\n"
    "switches"
]


@pytest.fixture(scope="module")
def notebook(shared: Notebook) -> Notebook:
    shared.open("switches.ipynb", CELLS)
    shared.run_all()
    return shared


@pytest.fixture
def form(notebook: Notebook) -> Locator:
    """The form as its cell made it."""
    form = notebook.page.get_by_role("form", name="Settings for the next run")
    expect(form).to_be_visible(timeout=30_000)
    notebook.ask("setattr(switches, 'settings', Settings(workers=4))")
    expect(form.get_by_role("status")).to_have_text("Next run: workers=4")
    return form


def test_a_change_in_the_page_arrives_in_the_kernel(notebook: Notebook, form: Locator):
    expect(form.get_by_label("Loader workers")).to_have_value("4")

    form.get_by_label("Precision").select_option("bf16")
    form.get_by_label("torch.compile").select_option("default")
    form.get_by_label("Batch size").fill("64")
    form.get_by_label("Batch size").press("Tab")

    expect(form.get_by_role("status")).to_have_text(
        "Next run: precision=bf16, compile=default, batch_size=64, workers=4"
    )
    assert (
        notebook.ask(
            "switches.settings == Settings("
            "precision='bf16', batch_size=64, workers=4, compile='default')"
        )
        == "True"
    )
    assert notebook.outside_requests == []
    assert notebook.console_errors == []


def test_a_change_in_the_kernel_arrives_in_the_page(notebook: Notebook, form: Locator):
    notebook.ask("setattr(switches, 'settings', Settings(pin_memory=False))")

    expect(form.get_by_label("Pinned memory")).to_have_value("off")
    expect(form.get_by_label("Loader workers")).to_have_value("")


def test_an_invalid_combination_says_what_to_do(notebook: Notebook, form: Locator):
    form.get_by_label("Prefetch factor").fill("2")
    form.get_by_label("Loader workers").fill("0")
    form.get_by_label("Loader workers").press("Enter")

    expect(form.get_by_role("alert")).to_contain_text("set workers to 1 or more")
    assert "invalid combination" in notebook.ask("switches.settings")

    form.get_by_role("button", name="All as yours").click()
    expect(form.get_by_role("alert")).to_have_count(0)
    expect(form.get_by_role("status")).to_have_text("Next run: as it is")
    assert notebook.ask("switches.settings == Settings()") == "True"
    assert notebook.console_errors == []


def test_as_yours_shows_the_value_that_the_work_has(form: Locator):
    expect(form.get_by_label("Batch size")).to_have_attribute("placeholder", "as yours (32)")
    expect(form.get_by_label("torch.compile").locator("option").first).to_have_text(
        "as yours (off)"
    )


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_text_is_legible_in_both_themes(
    notebook: Notebook, form: Locator, theme: str, tmp_path: Path
):
    notebook.theme(f"JupyterLab {theme}")

    for part in (form.get_by_text("Precision"), form.get_by_label("Precision"), help_text(form)):
        assert contrast(part) >= 4.5  # WCAG 2.1, level AA
    form.screenshot(path=tmp_path / f"switches-{theme}.png")


def help_text(form: Locator) -> Locator:
    return form.get_by_text("samples per batch")
