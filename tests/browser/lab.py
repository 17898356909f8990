"""A real JupyterLab on 127.0.0.1, and the few things that a test does in it."""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.system import chromium

START_LIMIT_S = 60
LOCAL = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:", "file:")


@dataclass(frozen=True, kw_only=True)
class Server:
    """Where JupyterLab answers, and the folder that it shows."""

    url: str
    token: str
    folder: Path


@contextmanager
def running_lab(folder: Path) -> Iterator[Server]:
    """JupyterLab over ``folder``, with settings of its own and nobody's extensions or kernels."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    root = folder / "notebooks"
    root.mkdir()
    _decline_news(folder / "settings")
    server = Server(url=f"http://127.0.0.1:{port}", token=secrets.token_hex(16), folder=root)
    with (folder / "lab.log").open("wb") as log:
        process = subprocess.Popen(
            _command(server, port), env=_environment(folder), stdout=log, stderr=log
        )
        try:
            _wait_until_up(server, process, folder / "lab.log")
            yield server
        finally:
            process.terminate()
            process.wait(timeout=30)


def _command(server: Server, port: int) -> list[str]:
    return [
        *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"),
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={server.token}",
        f"--ServerApp.root_dir={server.folder}",
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=None",
    ]


def _environment(folder: Path) -> dict[str, str]:
    own = ["CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR"]
    places = {f"JUPYTER_{name}": str(folder / name.lower()) for name in own}
    places["JUPYTERLAB_SETTINGS_DIR"] = str(folder / "settings")
    places["JUPYTERLAB_WORKSPACES_DIR"] = str(folder / "workspaces")
    places["IPYTHONDIR"] = str(folder / "ipython")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, **places, "PATH": path, "JUPYTER_PREFER_ENV_PATH": "1"}


def _decline_news(settings: Path) -> None:
    """Answer JupyterLab's first question beforehand, so that no dialog covers the page."""
    file = settings / "@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    file.parent.mkdir(parents=True)
    file.write_text('{"fetchNews": "false"}', encoding="utf-8")


def _wait_until_up(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{server.url}/api?token={server.token}", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(errors='replace')}")


class Notebook:
    """One notebook open in a page; remembers what the page asked for and complained about."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page = page
        self.server = server
        self.outside_requests: list[str] = []
        self.console_errors: list[str] = []
        page.on("request", self._note_request)
        page.on("websocket", self._note_request)
        page.on("pageerror", lambda error: self.console_errors.append(str(error)))
        page.on("console", self._note_console)

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith(LOCAL):
            self.outside_requests.append(request.url)

    def _note_console(self, message: Any) -> None:
        if message.type == "error":
            self.console_errors.append(message.text)

    def open(self, name: str, cells: list[str]) -> None:
        """Write a notebook of these code cells, open it, and wait for its kernel."""
        (self.server.folder / name).write_text(json.dumps(_document(cells)), encoding="utf-8")
        self.page.goto(f"{self.server.url}/lab/tree/{name}?token={self.server.token}&reset")
        self.page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status"
            " === 'idle'",
            timeout=60_000,
        )

    def command(self, name: str, **arguments: Any) -> None:
        """Execute one of JupyterLab's commands and wait until it is done."""
        self.page.evaluate(
            "([name, args]) => window.jupyterapp.commands.execute(name, args).then(() => null)",
            [name, arguments],
        )

    def run_all(self) -> None:
        """Run every cell."""
        self.command("notebook:run-all-cells")

    def run_cell(self, number: int, *, wait: bool = True) -> None:
        """Run one cell, counted from 0; ``wait`` until it has ended."""
        self.page.evaluate(
            """([number, wait]) => {
              const { content } = window.jupyterapp.shell.currentWidget;
              content.activeCellIndex = number;
              const done = window.jupyterapp.commands.execute("notebook:run-cell");
              return wait ? done.then(() => null) : null;
            }""",
            [number, wait],
        )

    def ask(self, expression: str) -> str:
        """The ``repr`` of an expression in the notebook's kernel."""
        return self.page.evaluate(
            """async (expression) => {
              const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
              const request = { code: "", user_expressions: { answer: expression } };
              const answer = (await kernel.requestExecute(request).done).content.user_expressions
                .answer;
              return answer.status === "ok" ? answer.data["text/plain"] : answer.evalue;
            }""",
            expression,
        )

    def theme(self, name: str) -> None:
        """Switch the theme: ``JupyterLab Light`` or ``JupyterLab Dark``."""
        self.command("apputils:change-theme", theme=name)
        light = str("Light" in name).lower()
        selector = f"body[data-jp-theme-light='{light}']"
        self.page.wait_for_selector(selector, state="attached")
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")


def _document(cells: list[str]) -> dict[str, Any]:
    made = [
        {
            "cell_type": "code",
            "id": f"cell{number}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for number, source in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


@contextmanager
def own_browser() -> Iterator[Browser]:
    """Chromium for a program that is no test, without a GPU."""
    arguments = ["--no-sandbox", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def own_notebook() -> Iterator[Notebook]:
    """A page in a JupyterLab and a browser of its own, for a program that is no test."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_lab(Path(folder)) as lab,
        own_browser() as browser,
    ):
        yield Notebook(browser.new_page(viewport={"width": 1400, "height": 1200}), lab)
