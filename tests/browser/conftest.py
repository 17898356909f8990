"""Chromium and JupyterLab for the browser tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.lab import Notebook, Server, running_lab
from tests.system import chromium

# Chromium as root in a container needs no sandbox; the rest keeps it from calling home.
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test in this folder is a browser test."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The Chromium that ``make test`` found or installed."""
    path = chromium()
    if path is None:
        pytest.fail("Chromium is missing: run `python -m tests.system` first.")
    return {**browser_type_launch_args, "executable_path": path, "args": _ARGUMENTS}


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One JupyterLab for the whole session."""
    with running_lab(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture
def notebook(page: Page, lab: Server) -> Notebook:
    """A page that opens notebooks in JupyterLab."""
    return Notebook(page, lab)


@pytest.fixture(scope="module")
def shared(browser: Browser, lab: Server) -> Iterator[Notebook]:
    """One page for all tests of a module: a kernel that has imported torch once serves them all."""
    context = browser.new_context()
    yield Notebook(context.new_page(), lab)
    context.close()
