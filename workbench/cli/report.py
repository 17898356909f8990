"""``workbench report``: one HTML file about a trace or a Run."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    path: Annotated[Path, typer.Argument(help="A trace, a Run folder, or a folder of ranks.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The HTML file; report.html by default.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="A Run or trace: is this one faster than it?")
    ] = None,
    other: Annotated[
        Path | None, typer.Option(help="A Run or trace: is it faster than this one?")
    ] = None,
) -> None:
    """Write a self-contained HTML report, made by papermill from a notebook.

    An older report of ours at the same place is replaced, and that is said; any other file there is
    left alone, and refused. Exit code: 0 written, 2 not written.
    """
    from workbench.reporting import report as write_report

    out = out or Path("report.html")
    replaced = out.exists()
    written = write_report(path, out, baseline=baseline, other=other)
    if replaced:
        typer.echo("workbench: replaced an older report.", err=True)
    typer.echo(str(written))
