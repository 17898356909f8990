"""What a laptop needs for the workshop, tried out: ``workbench doctor --workshop``.

Everything runs in processes of its own with a time limit, and nothing of it is left behind.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from workbench.machine.check import Check

PACKAGES = ("torch", "jupyterlab", "ipykernel", "ipywidgets", "anywidget", "papermill", "nbconvert")
LEAST_DISK_BYTES = 2_000_000_000
"""Runs of all lessons take a few hundred megabytes; the rest is room for one's own."""
KERNEL_LIMIT_S = 90
LAB_LIMIT_S = 90
PROFILE_LIMIT_S = 120

_INSTALL = 'pip install "torch-workbench[all]", or from a clone: make lab'
_KERNEL = """
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(startup_timeout=60, kernel_name="python3")
try:
    answer = client.execute_interactive("import workbench", timeout=60, store_history=False)
    assert answer["content"]["status"] == "ok", answer["content"].get("evalue")
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""
_PROFILE = """
import socket
def refused(*_, **__):
    raise OSError("the room check allows no network")
socket.getaddrinfo = socket.create_connection = refused
import workbench as wb
from workbench import clinic
run = wb.profile(clinic.case("slow_decode").workload(), steps=5, time_limit_s=100, progress=False)
print(len(run.findings))
"""


def room_rows() -> Iterator[Check]:
    """One row a check, as soon as it is done; those that need what failed are left out."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        yield Check(
            name="packages", value=f"missing: {', '.join(missing)}", state="problem",
            remedy=_INSTALL,
        )  # fmt: skip
    else:
        yield Check(name="packages", value="all that the lessons need")
    yield lessons_row()
    yield disk_row(Path.cwd())
    if missing:
        return
    with tempfile.TemporaryDirectory(prefix="workbench-room-") as place:
        yield tried("kernel", lambda: python(_KERNEL, Path(place), KERNEL_LIMIT_S))
        yield tried("JupyterLab", lambda: lab_answers(Path(place), LAB_LIMIT_S))
        yield tried("profile, offline", lambda: python(_PROFILE, Path(place), PROFILE_LIMIT_S))


def lessons_row() -> Check:
    """Whether the lessons came with the package."""
    with resources.as_file(resources.files("workbench") / "_notebooks") as folder:
        count = len(list((folder / "lessons").glob("*.ipynb")))
    if count:
        return Check(name="lessons", value=f"{count} notebooks; workbench lab copies them")
    return Check(name="lessons", value="none", state="problem", remedy=_INSTALL)


def disk_row(folder: Path) -> Check:
    """Whether Runs of the lessons find room here, and may be written."""
    free = shutil.disk_usage(folder).free
    value = f"{free / 1e9:.1f} GB free in this folder"
    if not os.access(folder, os.W_OK):
        remedy = "Change to a folder of your own before you start."
        return Check(name="disk", value="not writable", state="problem", remedy=remedy)
    if free < LEAST_DISK_BYTES:
        remedy = f"Make room: {LEAST_DISK_BYTES / 1e9:.0f} GB are enough."
        return Check(name="disk", value=value, state="problem", remedy=remedy)
    return Check(name="disk", value=value)


def tried(name: str, attempt: Callable[[], str | None]) -> Check:
    """A row for something that was tried; ``attempt`` gives what went wrong, if anything did."""
    began = time.monotonic()
    wrong = attempt()
    took = time.monotonic() - began
    if wrong is None:
        return Check(name=name, value=f"works; took {took:.0f} s")
    return Check(name=name, value=wrong, state="problem", remedy=_REMEDIES[name])


_REMEDIES = {
    "kernel": "Run: python -m ipykernel install --sys-prefix, in the environment of this command.",
    "JupyterLab": "Run: python -m jupyterlab, in a terminal, and read its last lines.",
    "profile, offline": "Run: workbench demo, and read what it says.",
}


def python(code: str, folder: Path, limit_s: float) -> str | None:
    """Run this in a fresh interpreter; ``None`` when it ends well, else its last words."""
    command = [sys.executable, "-c", code]
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=folder, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {limit_s:.0f} s"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines() or ["it ended without a word"]
    return lines[-1][:200]


def lab_answers(folder: Path, limit_s: float) -> str | None:
    """Start JupyterLab without a browser, ask it for its page, and end it."""
    with _lab(folder) as (server, files):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if server.poll() is not None:
                return f"it ended with code {server.returncode}"
            for found in files.glob("jpserver-*.json"):
                if (page := _asked(found)) is not None:
                    return None if b"jupyter-config-data" in page else "its page is not JupyterLab"
            time.sleep(0.2)
    return f"no answer within {limit_s:.0f} s"


@contextmanager
def _lab(folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    files = folder / "jupyter-runtime"
    files.mkdir()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--port=0", "--ip=127.0.0.1"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    server = subprocess.Popen(  # noqa: S603
        command,
        cwd=folder,
        env={**os.environ, "JUPYTER_RUNTIME_DIR": str(files)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield server, files
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _asked(found: Path) -> bytes | None:
    """The page of the server that wrote this file; ``None`` while it is not ready."""
    try:
        told = json.loads(found.read_text(encoding="utf-8"))
        url = f"{told['url']}lab?token={told['token']}"
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own server
            page: bytes = answer.read()
    except (OSError, ValueError, KeyError):
        return None
    return page
