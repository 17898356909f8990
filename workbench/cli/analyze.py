"""``workbench analyze``: numbers and findings of traces and Runs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from workbench.cli.bars import reading_bar
from workbench.errors import WorkbenchError
from workbench.findings.finding import SEVERITIES, Finding
from workbench.findings.lost_time import LEAST_STEPS_CRITICAL

if TYPE_CHECKING:
    from workbench.run.run import Run

FOUND = 1
CANNOT_READ = 2
_FEW = (
    "holds {} complete steps, and shares of a step are graded critical from "
    f"{LEAST_STEPS_CRITICAL} on: --fail-on warning judges fewer."
)


def analyze(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Traces, Run folders, or folders with one trace per rank. Traces in one folder "
            "that are the ranks of one job are one Run."
        ),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document per Run, a line each.")
    ] = False,
    fail_on: Annotated[
        Literal["info", "warning", "critical"] | None,
        typer.Option(help="Exit with 1 when a finding is at least this severe."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Read the ranks of a folder with so many processes at once."),
    ] = None,
    infer_steps: Annotated[
        bool,
        typer.Option(
            "--infer-steps",
            help="Where no step is marked, take what repeats as steps: the optimizer's step, else "
            "waits for batches.",
        ),
    ] = False,
) -> None:
    """Say where the time goes in each trace or Run, and what to do about it.

    Exit code: 0 fine, 1 findings at or above --fail-on, 2 something could not be read.

    Severity grows with the share of a step that a finding takes: info says where to look, warning
    needs at least 2 steps, critical a large share of at least 20 steps. Most traces hold fewer, so
    in CI --fail-on warning is the rule for them. What makes results wrong (a recompile limit that
    was reached, data read twice) is critical at once.
    """
    from workbench.run.source import open_runs

    unreadable, failing = False, False
    runs = open_runs(paths, workers=workers, infer_steps=infer_steps, watch=reading_bar)
    for path, opened in runs:
        try:
            run = opened()
            findings = _show(run, as_json=as_json)
        except WorkbenchError as error:
            typer.echo(f"workbench: {path}: {error}", err=True)
            unreadable = True
            continue
        if fail_on == "critical" and _steps(run) < LEAST_STEPS_CRITICAL:
            typer.echo(f"workbench: {path}: {_FEW.format(_steps(run))}", err=True)
        failing = failing or (fail_on is not None and any(_fails(f, fail_on) for f in findings))
    if unreadable:
        raise typer.Exit(CANNOT_READ)
    if failing:
        raise typer.Exit(FOUND)


def _show(run: "Run", *, as_json: bool) -> tuple[Finding, ...]:
    if as_json:
        typer.echo(json.dumps(run.summary.to_json(), allow_nan=False, ensure_ascii=True))
    else:
        from workbench.cli.console import print_run

        print_run(run)
    return run.findings


def _steps(run: "Run") -> int:
    """Steps of record, else the complete steps of the trace."""
    timings = None if run.record is None else run.record.timings
    if timings is not None:
        return max(0, len(timings.step_ns) - timings.warmup)
    return max((len(rank.steps.time_ns) for rank in run.ranks if rank.steps is not None), default=0)


def _fails(finding: Finding, least: str) -> bool:
    at_least = SEVERITIES.index(finding.severity) >= SEVERITIES.index(least)
    return finding.verdict == "yes" and at_least
