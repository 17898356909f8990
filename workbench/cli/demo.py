"""``workbench demo``: profile a real training loop twice and report on it."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.errors import MissingExtraError

if TYPE_CHECKING:
    from workbench.run.run import Run

BASELINE_WORKERS = 0
"""The planted bottleneck: every batch is decoded in the training process."""
TRIED_WORKERS = 2
FINDINGS = 3


def demo(
    folder: Annotated[Path, typer.Option(help="Where the Runs and the report go.")] = Path("runs"),
    steps: Annotated[int, typer.Option(min=4, help="Training steps to measure each time.")] = 40,
) -> None:
    """Train a small network on images that decode slowly, and see where the time goes.

    Makes an image folder (once), profiles without worker processes and again with two, compares
    the two, and writes a report.
    """
    before, after = _measure(folder, steps)
    _print_findings(before)
    typer.echo("\n" + before.compare(after).sentence)
    report = _write_report(before, after, folder)
    typer.echo(f"\nReport:           {report}")
    typer.echo("Open it:          in any browser; it needs no network")
    if shutil.which("workbench") is None and sys.prefix != sys.base_prefix:
        typer.echo(f"In this shell:    . {Path(os.path.relpath(sys.prefix)) / 'bin' / 'activate'}")
    typer.echo("In JupyterLab:    make lab, or: workbench lab")
    typer.echo(f'In your code:     import workbench as wb; wb.open("{before.folder}")')


def _measure(folder: Path, steps: int) -> tuple["Run", "Run"]:
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("torch", "torch", "workbench demo") from None
    from workbench.cli.demo_workload import demo_workload
    from workbench.profiling import profile
    from workbench.settings import Settings

    typer.echo("1/4 image folder: cut from photographs that installed packages ship …")
    work = demo_workload()
    runs = []
    for number, workers in ((2, BASELINE_WORKERS), (3, TRIED_WORKERS)):
        typer.echo(f"{number}/4 training with {workers} loader workers (up to a minute) …")
        settings = Settings(workers=workers)
        name = f"demo-{workers}-workers"
        runs.append(profile(work, settings, steps=steps, folder=folder, name=name))
    return runs[0], runs[1]


def _print_findings(run: "Run") -> None:
    from workbench.pages.findings import findings_text

    typer.echo(f"\nTop findings of {run.name}:\n")
    typer.echo(findings_text(run.findings[:FINDINGS]))


def _write_report(before: "Run", after: "Run", folder: Path) -> Path:
    from workbench.reporting import report

    typer.echo("\n4/4 report …")
    return report(before, folder / f"{before.name}.html", other=after)
