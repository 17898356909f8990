"""Runs papermill and nbconvert in a process of their own, and leaves none behind.

In the caller's process they would meet its event loop, its warning filters and its current folder,
and an interrupt would leave the kernel running.
"""

import os
import site
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from workbench.errors import CellError, ReportError, TimeLimitError
from workbench.reporting.privacy import PROJECT

POLL_S = 0.1
LOOK_S = 0.5
"""How often the notebook that papermill saves is looked at for progress."""
LOG_LINES = 12
_DROPPED = ("PYTHONWARNINGS", "PYTHONSTARTUP", "MPLBACKEND")


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What the worker is to do; it works in the folder that it is started in."""

    parameters: dict[str, Any]
    title: str
    """What the browser's tab says."""
    heading: str | None
    """Heading of the page; without one the Run's own name and verdict open it."""
    footer: str
    cell_time_limit_s: float | None = None
    """How long one cell may take."""
    where: str | None = None
    """The folder in which a notebook of the user's is executed."""
    private: bool = True
    """Whether secrets and places of this machine stay out."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it; ``problem`` is ``None`` when the page was made."""

    problem: str | None = None
    shown: str | None = None
    """The cell that failed, whole, with its traceback."""


Say = Callable[[str], Any] | None


def run_worker(job: Job, folder: Path, *, time_limit_s: float, say: Say = None) -> None:
    """Execute ``report.ipynb`` in ``folder`` and export it as ``report.html``.

    Raises:
        CellError: A cell failed.
        ReportError: The kernel died, or the page could not be made.
        TimeLimitError: It took too long.
    """
    (folder / "job.json").write_bytes(msgspec.json.encode(job))
    command = [sys.executable, "-m", "workbench.reporting.execute"]
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own module, no shell
            command,
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait(process, time_limit_s, folder, say or (lambda _: None))
    finally:
        stop_tree(process)
    outcome = _outcome(folder)
    if outcome is None:
        raise ReportError(
            f"the process that makes reports ended with code {process.returncode}.{_log(folder)}"
        )
    if outcome.problem is not None and outcome.shown is not None:
        raise CellError(outcome.problem, outcome.shown)
    if outcome.problem is not None:
        raise ReportError(outcome.problem)


def _wait(
    process: "subprocess.Popen[bytes]",
    time_limit_s: float,
    folder: Path,
    say: Callable[[str], Any],
) -> None:
    deadline, look, seen, told = time.monotonic() + time_limit_s, 0.0, 0, ""
    while process.poll() is None:
        now = time.monotonic()
        if now > deadline:
            raise TimeLimitError(
                f"the report took longer than {time_limit_s:g} s and was cancelled "
                f"{running_cell(folder)}: give a larger time_limit_s, or a shorter trace."
            )
        if now >= look:
            look = now + LOOK_S
            changed = _saved_at(folder)
            if changed != seen:
                seen = changed
                if (cell := progress(folder)) and cell != told:
                    told = cell
                    say(cell)
        time.sleep(POLL_S)


def _saved_at(folder: Path) -> int:
    try:
        return (folder / "executed.ipynb").stat().st_mtime_ns
    except OSError:
        return 0


def progress(folder: Path) -> str | None:
    """``cell 4 of 12: what it is about``, of the cell that runs."""
    found = _running(folder)
    if found is None:
        return None
    number, cells = found
    lines = "".join(cells[number - 1].get("source", "")).splitlines()
    about = next((line.strip() for line in lines if line.strip()), "")
    return f"cell {number} of {len(cells)}: {about.lstrip('# ')[:72]}"


def stop_tree(process: "subprocess.Popen[bytes]") -> None:
    """End the worker and every process that it started, the kernel among them."""
    import psutil

    try:
        family = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    if process.stdin is not None:
        process.stdin.close()
    if process.poll() is None:
        process.kill()
    process.wait()
    for child in family:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(family, timeout=5)


def running_cell(folder: Path) -> str:
    """Where papermill stood, from the notebook that it saves as it goes."""
    cells = _code(folder)
    if cells is None:
        return "before its first cell"
    found = _running(folder)
    return "between two cells" if found is None else f"in cell {found[0]}"


def _running(folder: Path) -> tuple[int, list[Any]] | None:
    cells = _code(folder) or []
    for number, cell in enumerate(cells, start=1):
        if cell.get("metadata", {}).get("papermill", {}).get("status") == "running":
            return number, cells
    return None


def _code(folder: Path) -> list[Any] | None:
    try:
        cells = msgspec.json.decode((folder / "executed.ipynb").read_bytes())["cells"]
    except (OSError, msgspec.DecodeError, KeyError):
        return None
    return [cell for cell in cells if cell["cell_type"] == "code"]


def _environment(folder: Path) -> dict[str, str]:
    """The caller's environment without what would change the notebook, and our own Jupyter places.

    A user's IPython start-up files, kernels and Jupyter settings do not reach a report.
    """
    env = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        env[name] = str(folder / name.lower())
    env["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    env.setdefault(PROJECT, str(Path.cwd()))
    ours = Path(__file__).parents[2]
    if str(ours) not in [*site.getsitepackages(), site.getusersitepackages()]:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ours), env.get("PYTHONPATH")]))
    return env


def _outcome(folder: Path) -> Outcome | None:
    try:
        return msgspec.json.decode((folder / "outcome.json").read_bytes(), type=Outcome)
    except (OSError, msgspec.DecodeError):
        return None


def _log(folder: Path) -> str:
    lines = (folder / "worker.log").read_text(errors="replace").splitlines()[-LOG_LINES:]
    return " Its last words:\n" + "\n".join(lines) if lines else ""
