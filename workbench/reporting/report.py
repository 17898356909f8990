"""``wb.report``: one self-contained HTML file about a Run or a trace."""

import importlib.util
import json
import os
import secrets
import shutil
import tempfile
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from workbench.errors import MissingExtraError, ReportError, RunError
from workbench.reporting.worker import Job, run_worker
from workbench.run.run import Run
from workbench.version import version

NOTEBOOK = ("_notebooks", "reports", "profile.ipynb")
_MARK, _HEAD_BYTES = b'<meta name="generator" content="torch-workbench">', 2000
"""What our page says of itself, and within how many bytes of its start."""
NEEDED = ("papermill", "nbconvert", "ipykernel")


def report(
    run: Run | str | Path,
    out: str | Path = "report.html",
    *,
    baseline: Run | str | Path | None = None,
    other: Run | str | Path | None = None,
    title: str | None = None,
    time_limit_s: float = 600,
) -> Path:
    """Execute the report notebook over a Run and write it as one HTML file.

    The file needs no network, no kernel and no other file. It is written whole or not at all; an
    older report at the same place is replaced, any other file there is left alone and refused. The
    notebook runs in a process of its own, so this works in a script as well as in a running
    notebook.

    Args:
        run: A Run, or the path of a Run folder, a trace, or a folder with a trace per rank.
        out: Where the report goes.
        baseline: What to compare with: is ``run`` faster than it? A verdict needs two measured
            Runs; of a trace alone everything else is compared.
        other: What to compare with the other way round: is it faster than ``run``?
        title: Heading of the page; the name of the Run when not given.
        time_limit_s: After this many seconds everything is cancelled.

    Returns:
        The path of the report.

    Raises:
        MissingExtraError: papermill, nbconvert or ipykernel is not installed.
        ReportError: ``out`` cannot be written, or holds something else than a report of ours; or a
            cell of the notebook failed: then the executed notebook is kept beside ``out``.
        TimeLimitError: It took longer than ``time_limit_s``.
    """
    for package in NEEDED:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "notebook", "A report")
    _check(title, time_limit_s)
    source = path_of(run)
    out = _file(out)
    parameters: dict[str, Any] = {
        "run_path": str(source),
        "baseline_path": None if baseline is None else str(path_of(baseline)),
        "other_path": None if other is None else str(path_of(other)),
    }
    name = run.name if isinstance(run, Run) else source.name
    job = Job(
        parameters=parameters,
        title=title or f"Profile of {name}",
        heading=title,
        footer=f"torch-workbench {version()}".removesuffix(" unknown"),
    )
    with tempfile.TemporaryDirectory(prefix="workbench-report-", ignore_cleanup_errors=True) as at:
        folder = Path(at)
        draft = _draft(out)
        try:
            notebook = files("workbench").joinpath(*NOTEBOOK).read_bytes()
            (folder / "report.ipynb").write_bytes(notebook)
            _finish(job, folder, draft, out, time_limit_s)
        finally:
            draft.unlink(missing_ok=True)
    return out


def path_of(run: Run | str | Path) -> Path:
    """Where the kernel that makes the report finds a Run."""
    if not isinstance(run, Run):
        if not isinstance(run, str | os.PathLike):
            raise RunError(f"{run!r} is neither a Run nor a path: give one of these.")
        path = Path(run).expanduser().absolute()
        if not path.exists():
            raise RunError(
                f"{path} does not exist: give a trace (.json, .json.gz), a Run folder, "
                "or a folder with one trace per rank."
            )
        return path
    if run.place is not None:
        return run.place.absolute()
    if not run.traces:
        raise RunError(f"{run.name!r} is not on disk: open its trace from a file.")
    first = run.traces[0]
    return first if len(run.traces) == 1 else first.parent


def _check(title: Any, time_limit_s: Any) -> None:
    if title is not None and not isinstance(title, str):
        raise ReportError(f"title={title!r} must be text, or left out.")
    number = isinstance(time_limit_s, int | float) and not isinstance(time_limit_s, bool)
    if not (number and time_limit_s > 0):
        raise ReportError(f"time_limit_s={time_limit_s!r} must be a positive number of seconds.")


def _file(out: Any) -> Path:
    if not isinstance(out, str | os.PathLike) or "\0" in str(out):
        raise ReportError(f"out={out!r} is not a path: give the name of a file.")
    return Path(out).expanduser().absolute()


def _draft(out: Path) -> Path:
    """A new, empty file beside ``out``: proof, before any work, that it can be written."""
    draft = out.with_name(f".{out.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    try:
        if out.is_dir():
            raise ReportError(f"{out} is a folder: give the name of a file, such as report.html.")
        if out.exists() and not is_report(out):
            raise ReportError(
                f"{out} is there and no report of ours, so it is left alone: give another name "
                "(--out NAME.html on the command line, out=... in Python), or move it away."
            )
        draft.touch(exist_ok=False)
    except OSError as error:
        raise ReportError(
            f"no report can be written in {out.parent} ({error.strerror}): make the folder, "
            "or give out=... a place that you may write to."
        ) from error
    return draft


def is_report(path: Path) -> bool:
    """Whether a file is a report that this module wrote, whole, or else empty.

    Raises:
        OSError: It cannot be read.
    """
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return not head or _MARK in head


def _finish(job: Job, folder: Path, draft: Path, out: Path, time_limit_s: float) -> None:
    try:
        run_worker(job, folder, time_limit_s=time_limit_s)
    except ReportError as error:
        kept = _keep(folder, out)
        if kept is None:
            raise
        raise ReportError(f"{error} The executed notebook is kept as {kept.name}.") from None
    try:
        shutil.copyfile(folder / "report.html", draft)
        draft.replace(out)
    except OSError as error:
        raise ReportError(
            f"{out} could not be written ({error.strerror}): free some space, or give out=... "
            "another place."
        ) from error


def _keep(folder: Path, out: Path) -> Path | None:
    """Save the executed notebook beside the report that was not made."""
    executed = folder / "executed.ipynb"
    kept = out.with_name(f"{out.stem}.failed.ipynb")
    with suppress(OSError, ValueError):
        json.loads(executed.read_bytes())
        shutil.copyfile(executed, kept)
        return kept
    return None
