"""``wb.report``: one self-contained HTML file about a Run or a trace."""

import importlib.util
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.errors import CellError, MissingExtraError, ReportError, TimeLimitError
from workbench.reporting.asked import Asked
from workbench.reporting.export import guard_notebook
from workbench.reporting.kinds import Kind
from workbench.reporting.pdf import chromium, print_pdf
from workbench.reporting.privacy import Guard, secrets_in
from workbench.reporting.summary import FILES as SUMMARIES
from workbench.reporting.worker import Job, run_worker
from workbench.run.run import Run
from workbench.version import version

_MARK, _HEAD_BYTES = b'<meta name="generator" content="torch-workbench">', 2000
"""What our page says of itself, and within how many bytes of its start."""
NEEDED = ("papermill", "nbconvert", "ipykernel")


def report(
    run: Run | str | Path | None = None,
    out: str | Path = "report.html",
    *,
    baseline: Run | str | Path | None = None,
    other: Run | str | Path | None = None,
    base: Run | str | Path | None = None,
    kind: Kind | None = None,
    workload: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    files: str | Path | None = None,
    pdf: str | Path | None = None,
    hide_places: bool = True,
    title: str | None = None,
    time_limit_s: float = 600,
    cell_time_limit_s: float | None = None,
    say: Callable[[str], Any] | None = None,
) -> Path:
    """Execute a report notebook over a Run and write it as one HTML file.

    The file needs no network, no kernel and no other file. It is written whole or not at all; an
    older report at the same place is replaced, any other file there is left alone and refused. The
    notebook runs in a process of its own, so this works in a script as well as in a running
    notebook.

    Args:
        run: A Run, or the path of a Run folder, a trace, or a folder with a trace per rank; or a
            notebook of your own (``.ipynb``), which is executed in its folder.
        out: Where the report goes.
        baseline: What to compare with: is ``run`` faster than it? A verdict needs two measured
            Runs; of a trace alone everything else is compared.
        other: What to compare with the other way round: is it faster than ``run``?
        base: Make a comparison of it with ``run``, rather than a profile of ``run``.
        kind: profile, compare, ranks or loader; by default the one for what was given.
        workload: ``module:function`` of the current folder, giving a :class:`Workload`: it is
            profiled now, in place of a ``run``. Of kinds profile and loader.
        parameters: Values for the notebook's parameters, by name.
        files: A folder that also gets the executed notebook, ``summary.json``, ``summary.md`` for
            a pull request and ``junit.xml``.
        pdf: Also print the report here, with the Chromium of this machine.
        hide_places: Tell paths from the current folder, and hide what looks like a secret.
        title: Heading of the page; the name of the Run when not given.
        time_limit_s: After this many seconds everything is cancelled.
        cell_time_limit_s: The same for one cell.
        say: Is told which cell runs.

    Returns:
        The path of the report.

    Raises:
        MissingExtraError: papermill, nbconvert or ipykernel is not installed.
        CellError: A cell of the notebook failed: ``.shown`` holds it whole, and the executed
            notebook is kept beside ``out``.
        ReportError: ``out`` cannot be written, or holds something else than a report of ours; or
            what was asked for does not fit together.
        TimeLimitError: It took longer than ``time_limit_s``.
    """
    _need_packages()
    _check(title, time_limit_s)
    if cell_time_limit_s is not None:
        _check(None, cell_time_limit_s, "cell_time_limit_s")
    asked = Asked(run, kind, base=base, baseline=baseline, other=other, workload=workload)
    out = _file(out)
    if pdf is not None:
        pdf = _file(pdf)
        chromium()
    given = {**asked.parameters(), **(parameters or {})}
    kept = None if files is None else _folder(files)
    with tempfile.TemporaryDirectory(prefix="workbench-report-", ignore_cleanup_errors=True) as at:
        folder = Path(at)
        if asked.own is None:
            summaries = None if kept is None else str(folder / "summary")
            given |= {"summary_folder": summaries, "hide_places": hide_places}
        job = _job(asked, given, title, cell_time_limit_s, private=hide_places)
        draft = _draft(out)
        try:
            (folder / "report.ipynb").write_bytes(asked.notebook())
            _finish(job, folder, draft, out, time_limit_s, say)
            if kept is not None:
                _keep_files(folder, kept)
        finally:
            draft.unlink(missing_ok=True)
    if pdf is not None:
        print_pdf(out, pdf, time_limit_s=time_limit_s)
    return out


def _job(
    asked: Asked,
    given: dict[str, Any],
    title: str | None,
    cell_time_limit_s: float | None,
    *,
    private: bool,
) -> Job:
    return Job(
        parameters=given,
        title=title or asked.title,
        heading=title,
        footer=f"torch-workbench {version()}".removesuffix(" unknown"),
        cell_time_limit_s=cell_time_limit_s,
        where=None if asked.own is None else str(asked.own.parent),
        private=private,
    )


def _folder(files: Any) -> Path:
    place = _file(files)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(
            f"{place} is no folder to write to ({error.strerror}): give files=... another place."
        ) from error
    return place


def _keep_files(folder: Path, place: Path) -> None:
    """The executed notebook, small, and what the notebook wrote for programs."""
    from workbench.reporting.export import small

    try:
        (place / "report.ipynb").write_bytes(small(folder / "executed.ipynb"))
        for name in SUMMARIES:
            if (made := folder / "summary" / name).is_file():
                shutil.copyfile(made, place / name)
    except OSError as error:
        raise ReportError(f"{place} could not be written ({error.strerror}).") from error


def _need_packages() -> None:
    for package in NEEDED:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "notebook", "A report")


def _check(title: Any, time_limit_s: Any, name: str = "time_limit_s") -> None:
    if title is not None and not isinstance(title, str):
        raise ReportError(f"title={title!r} must be text, or left out.")
    number = isinstance(time_limit_s, int | float) and not isinstance(time_limit_s, bool)
    if not (number and time_limit_s > 0):
        raise ReportError(f"{name}={time_limit_s!r} must be a positive number of seconds.")


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


def _finish(  # noqa: PLR0917
    job: Job,
    folder: Path,
    draft: Path,
    out: Path,
    time_limit_s: float,
    say: Callable[[str], Any] | None,
) -> None:
    try:
        run_worker(job, folder, time_limit_s=time_limit_s, say=say)
    except (ReportError, TimeLimitError) as error:
        kept = _keep(folder, out, job)
        if kept is None:
            raise
        told = f"{error} The executed notebook is kept as {kept.name}."
        if isinstance(error, CellError):
            raise CellError(told, error.shown) from None
        raise type(error)(told) from None
    try:
        shutil.copyfile(folder / "report.html", draft)
        draft.replace(out)
    except OSError as error:
        raise ReportError(
            f"{out} could not be written ({error.strerror}): free some space, or give out=... "
            "another place."
        ) from error


def _keep(folder: Path, out: Path, job: Job) -> Path | None:
    """Save the executed notebook beside the report that was not made."""
    executed = folder / "executed.ipynb"
    kept = out.with_name(f"{out.stem}.failed.ipynb")
    with suppress(OSError, ValueError):
        json.loads(executed.read_bytes())
        guard_notebook(executed, Guard(secrets=secrets_in(job.parameters), paths=job.private))
        shutil.copyfile(executed, kept)
        return kept
    return None
