"""The Perfetto UI opens a trace by itself, and asks nobody but our server for anything."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page

import workbench as wb
from tests.browser.lab import Notebook
from tests.run.test_open import gpu_trace

LIMIT_MS = 90_000


def test_the_trace_is_shown_without_a_network(page: Page, tmp_path: Path) -> None:
    made = gpu_trace()
    label = {"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "args": {"name": "my loop"}}
    made.events.append(label)
    shown = wb.open(made.write(tmp_path / "t.json.gz")).perfetto()
    answered: list[str] = []
    page.on("requestfinished", lambda request: answered.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    try:
        page.goto(shown.url)
        page.wait_for_selector(".pf-track", timeout=LIMIT_MS)
        page.get_by_text("my loop 100").first.wait_for(timeout=LIMIT_MS)
    finally:
        shown.stop()

    assert any(urlsplit(url).path.endswith("/trace/t.json.gz") for url in answered)
    outside = [url for url in answered if not url.startswith(("data:", "blob:"))]
    assert {urlsplit(url).netloc for url in outside} == {urlsplit(shown.url).netloc}


def test_a_notebook_shows_it_in_a_frame(notebook: Notebook, tmp_path: Path) -> None:
    path = gpu_trace().write(tmp_path / "t.json")
    answered: list[Any] = []
    notebook.page.on("requestfinished", lambda request: answered.append(request.url))
    cell = f"import workbench as wb\nshown = wb.open({str(path)!r}).perfetto()\nshown"
    notebook.open("perfetto.ipynb", [cell])
    notebook.run_all()
    frame = notebook.page.frame_locator("iframe[title^='Perfetto']")
    frame.locator(".pf-track").first.wait_for(timeout=LIMIT_MS)

    hosts = {urlsplit(url).hostname for url in answered if url.startswith("http")}
    assert hosts == {"127.0.0.1"}
    assert notebook.ask("shown.stop()") == "None"
