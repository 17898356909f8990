"""Find or install the programs outside Python that the tests start; ``make test`` runs this first.

    python -m tests.system

Prints what it found, installs what is missing where it can (apt as root on Debian, Playwright's
own Chromium elsewhere), and otherwise ends with one error that names everything still missing.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
COMPILER_NAMES = ("g++", "clang++", "c++")


@dataclass(frozen=True, kw_only=True)
class Need:
    """One program, what it is for, and where it comes from."""

    name: str
    purpose: str
    find: Callable[[], str | None]
    debian: str
    elsewhere: str


def chromium() -> str | None:
    """Path of the Chromium to drive: one on PATH, else the one that Playwright downloaded."""
    return _on_path(CHROMIUM_NAMES) or _playwright_chromium()


def _on_path(names: tuple[str, ...]) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)


def _playwright_chromium() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def _python_headers() -> str | None:
    header = Path(sysconfig.get_path("include")) / "Python.h"
    return str(header) if header.exists() else None


NEEDS = (
    Need(
        name="Chromium",
        purpose="the browser tests",
        find=chromium,
        debian="chromium",
        elsewhere="install Chromium or Google Chrome so that it is on PATH",
    ),
    Need(
        name="a C++ compiler",
        purpose="the torch.compile tests",
        find=lambda: _on_path(COMPILER_NAMES),
        debian="g++",
        elsewhere="macOS: xcode-select --install",
    ),
    Need(
        name="Python.h",
        purpose="the torch.compile tests",
        find=_python_headers,
        debian="python3-dev",
        elsewhere="install the development files of this Python",
    ),
    Need(
        name="Node.js",
        purpose="the JavaScript tests",
        find=lambda: _on_path(("node", "nodejs")),
        debian="nodejs",
        elsewhere="macOS: brew install node",
    ),
    Need(
        name="mpirun",
        purpose="the tests of ranks",
        find=lambda: _on_path(("mpirun",)),
        debian="openmpi-bin",
        elsewhere="macOS: brew install open-mpi",
    ),
    Need(
        name="ip",
        purpose="the tests of ranks without IPv4",
        find=lambda: shutil.which("ip") or (None if sys.platform == "linux" else "not on Linux"),
        debian="iproute2",
        elsewhere="other distributions have it as iproute or iproute2",
    ),
    Need(
        name="unshare",
        purpose="the tests of ranks without IPv4",
        find=lambda: (
            shutil.which("unshare") or (None if sys.platform == "linux" else "not on Linux")
        ),
        debian="util-linux",
        elsewhere="other distributions have it in util-linux",
    ),
)


def install(missing: list[Need]) -> None:
    """Try what this machine allows; the caller looks again afterwards."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        packages = [need.debian for need in missing]
        sys.stdout.write(f"Installing {' '.join(packages)} with apt-get.\n")
        sys.stdout.flush()
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update"], env=environment, check=False)
        command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
        subprocess.run(command, env=environment, check=False)
    if any(need.debian == "chromium" and not need.find() for need in missing):
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def main() -> int:
    """Look, install, look again; 1 when something is still missing."""
    missing = [need for need in NEEDS if not need.find()]
    if missing:
        install(missing)
    for need in NEEDS:
        sys.stdout.write(f"{need.name}: {need.find() or 'missing'}\n")
    missing = [need for need in NEEDS if not need.find()]
    for need in missing:
        sys.stderr.write(
            f"error: {need.name} is missing, which {need.purpose} need. "
            f"Debian: apt-get install {need.debian}; {need.elsewhere}. Then run make test again.\n"
        )
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
