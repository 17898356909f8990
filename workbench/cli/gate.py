"""``workbench gate``: fail a build that became slower, and say when nobody can tell."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from workbench.gate import Gate


def gate(
    *,
    base: Annotated[
        list[Path] | None,
        typer.Option(help="A Run, trace, folder of Runs or verification; several are repeats."),
    ] = None,
    head: Annotated[list[Path] | None, typer.Option(help="What is judged; the same kinds.")] = None,
    budget: Annotated[Path | None, typer.Option(help="A budget.toml.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for gate.json, gate.html, summary.md and junit.xml.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    strict: Annotated[bool, typer.Option(help="Exit with 3 when nobody can tell.")] = False,
    counters_only: Annotated[
        bool, typer.Option(help="Judge only counts, which are the same on any machine.")
    ] = False,
    measure_both: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="BASE HEAD", help="Two git revisions, measured here in turns."),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Gives the Workload, for --measure-both."),
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of a block, for --measure-both.")] = 20,
    blocks: Annotated[int, typer.Option(help="Blocks a side, for --measure-both.")] = 10,
    time_limit: Annotated[float, typer.Option(help="Seconds, for --measure-both.")] = 1800,
) -> None:
    """Judge whether a head is worse than its base, or than a budget allows.

    Exit code: 0 passed, 1 failed, 2 could not be measured, 3 cannot tell (only with --strict).
    """
    if measure_both is not None or workload is not None:
        found = _measured(
            measure_both,
            workload,
            budget=budget,
            counters_only=counters_only,
            steps=steps,
            blocks=blocks,
            time_limit_s=time_limit,
            quiet=as_json,
        )
    else:
        from workbench.gate import gate as judge

        found = judge(base, head, budget=budget, counters_only=counters_only)
    if out is not None:
        found.write(out)
    typer.echo(json.dumps(found.to_json(), allow_nan=False) if as_json else repr(found))
    raise typer.Exit(found.exit_code(strict=strict))


def _measured(
    revisions: tuple[str, str] | None, workload: str | None, *, quiet: bool, **how: Any
) -> "Gate":
    from workbench.errors import GateError
    from workbench.gate.both import measure_both

    if revisions is None or workload is None:
        raise GateError("--measure-both BASE HEAD and --workload MODULE:FUNCTION belong together.")
    say = None if quiet else partial(typer.echo, err=True)
    return measure_both(*revisions, workload=workload, say=say, **how)
