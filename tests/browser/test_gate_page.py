"""The page of a gate in a browser: whole without scripts, accessible, no wider than the screen."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import BrowserContext

from tests.browser.axe import complaints_of
from tests.gate.sides import timed
from workbench.gate.gate import gate_sides
from workbench.gate.html import gate_page

ALL_OPEN = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


@pytest.fixture(scope="module")
def gate_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gate of three workloads: one far slower, one as it was, one too noisy to tell."""
    rng = np.random.default_rng(12)
    base = {"steady": timed(rng, 10), "slower": timed(rng, 10), "noisy": timed(rng, 10, 0.5)}
    head = {"steady": timed(rng, 10), "slower": timed(rng, 20), "noisy": timed(rng, 11, 0.5)}
    path = tmp_path_factory.mktemp("gate") / "gate.html"
    path.write_text(gate_page(gate_sides(base, head)), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [420, 1280])
def test_the_page_of_a_gate_is_whole_and_accessible(
    new_context: Callable[..., BrowserContext], gate_file: Path, scheme: str, width: int
):
    context = new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )  # the page forbids scripts, axe's as well
    context.set_offline(True)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(gate_file.as_uri())
    page.evaluate(ALL_OPEN)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for verdict in ("FAIL", "pass"):
        assert page.get_by_text(verdict).first.is_visible()
    assert complaints_of(page) == []
    assert said == []
