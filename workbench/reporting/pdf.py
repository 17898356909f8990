"""A report as PDF, printed by the Chromium of this machine."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from workbench.errors import ReportError, TimeLimitError

NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "microsoft-edge"),
)
VARIABLE = "WORKBENCH_CHROMIUM"
DRAWN_MS = 20_000
"""What the page may take to draw its charts, on its own clock, which runs faster."""


def chromium() -> str:
    """The browser that prints.

    Raises:
        ReportError: There is none.
    """
    asked = os.environ.get(VARIABLE)
    found = next((path for name in (asked, *NAMES) if name and (path := shutil.which(name))), None)
    if found is None:
        raise ReportError(
            "a PDF needs Chromium or Chrome, and none was found: install it (Debian: apt-get "
            f"install chromium), or name it in the variable {VARIABLE}."
        )
    return found


def print_pdf(page: Path, out: Path, *, time_limit_s: float = 120) -> Path:
    """Print a page that needs no network.

    Raises:
        ReportError: There is no browser, or it printed nothing.
        TimeLimitError: It took longer than ``time_limit_s``.
    """
    browser = chromium()
    with tempfile.TemporaryDirectory(prefix="workbench-pdf-", ignore_cleanup_errors=True) as at:
        made = Path(at) / "report.pdf"
        command = [
            browser,
            *("--headless=new", "--disable-gpu", "--no-first-run", "--disable-extensions"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--no-pdf-header-footer", f"--virtual-time-budget={DRAWN_MS}"),
            *("--disable-dev-shm-usage", f"--user-data-dir={at}/profile"),
            f"--print-to-pdf={made}",
        ]
        if sys.platform == "linux" and os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium refuses root otherwise; the page is our own
        said = _run([*command, page.absolute().as_uri()], time_limit_s)
        if not made.is_file() or not made.read_bytes().startswith(b"%PDF"):
            raise ReportError(f"{browser} printed no PDF. Its last words:\n{said[-1000:]}")
        shutil.copyfile(made, out)
    return out


def _run(command: list[str], time_limit_s: float) -> str:
    from workbench.reporting.worker import stop_tree

    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(  # noqa: S603 - a browser of this machine, no shell
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
        )
        try:
            process.wait(time_limit_s)
        except subprocess.TimeoutExpired:
            raise TimeLimitError(
                f"printing the PDF took longer than {time_limit_s:g} s and was cancelled: give a "
                "larger time_limit_s, or leave the PDF out."
            ) from None
        finally:
            stop_tree(process)
        log.seek(0)
        return log.read().decode(errors="replace")
