"""``workbench report``: one HTML file about a trace, a Run, a workload, or two of them."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

FAILED = 1
"""The exit code of a report whose notebook failed; 2 is of one that could not be started."""


def report(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="A trace, a Run folder, or a folder of ranks; two are a base and its head; "
            "or a notebook of your own.",
        ),
    ] = None,
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The HTML file; report.html by default.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="A Run or trace: is this one faster than it?")
    ] = None,
    other: Annotated[
        Path | None, typer.Option(help="A Run or trace: is it faster than this one?")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="profile, compare, ranks or loader; else by what is given.")
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Profile this workload, in place of a PATH."),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="For the notebook."),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(help="Folder for report.ipynb, summary.json, summary.md and junit.xml."),
    ] = None,
    pdf: Annotated[Path | None, typer.Option(help="Also print it here, with Chromium.")] = None,
    show_places: Annotated[
        bool, typer.Option("--show-places", help="Tell paths of this machine as they are.")
    ] = False,
    time_limit: Annotated[float, typer.Option(help="Seconds for everything.")] = 600,
    cell_time_limit: Annotated[
        float | None, typer.Option(help="Seconds for one cell of the notebook.")
    ] = None,
) -> None:
    """Write a self-contained HTML report, made by papermill from a notebook.

    An older report of ours at the same place is replaced, and that is said; any other file there is
    left alone, and refused. Exit code: 0 written, 1 a cell of the notebook failed, 2 not written.
    """
    from workbench.errors import CellError, ReportError
    from workbench.reporting import report as write_report

    given = list(paths or ())
    if len(given) > 2:
        raise ReportError("give one PATH, or two: the base and then the head.")
    out = out or Path("report.html")
    replaced = out.exists()
    try:
        written = write_report(
            given[-1] if given else None,
            out,
            baseline=baseline,
            other=other,
            base=given[0] if len(given) == 2 else None,
            kind=kind,  # type: ignore[arg-type]  # an unknown one is told by the callee
            workload=workload,
            parameters=_parameters(parameter or ()),
            files=files,
            pdf=pdf,
            hide_places=not show_places,
            time_limit_s=time_limit,
            cell_time_limit_s=cell_time_limit,
            say=partial(typer.echo, err=True),
        )
    except CellError as error:
        typer.echo(f"{error.shown}\n\nworkbench: {error}", err=True)
        raise typer.Exit(FAILED) from None
    if replaced:
        typer.echo("workbench: replaced an older report.", err=True)
    typer.echo(str(written))


def _parameters(given: Any) -> dict[str, Any]:
    """``NAME=VALUE``: numbers, true, false, null and lists as in JSON, everything else as text."""
    from workbench.errors import ReportError

    found = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not (sign and name.isidentifier()):
            raise ReportError(f"--parameter {text!r} is none: write NAME=VALUE.")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found
