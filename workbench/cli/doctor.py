"""``workbench doctor``: what this machine can and cannot measure."""

import json
from typing import Annotated

import typer

MARKS = {"ok": "✓", "warning": "!", "problem": "✗"}
PROBLEM = 1


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    workshop: Annotated[
        bool, typer.Option("--workshop", help="Also try out all that the lessons need.")
    ] = False,
) -> None:
    """Check processors, memory, devices, dtypes, versions and competing load.

    What each dtype costs is measured the first time, which takes some seconds. With --workshop it
    also starts a kernel, JupyterLab and a short profile, offline, which takes up to a minute.

    Exit code: 0 when nothing stands in the way, 1 when there is a problem.
    """
    from workbench.machine import devices, known_probe, preflight
    from workbench.machine.probe_rows import probed_names

    found = preflight()
    rows = tuple(found.rows)
    if workshop:
        from workbench.cli.room_check import room_rows

        rows += tuple(room_rows())
    if as_json:
        document = {
            "schema": "workbench.doctor/1",
            "checks": [
                {"name": r.name, "value": r.value, "state": r.state, "remedy": r.remedy}
                for r in rows
            ],
            "dtypes": {
                name: None if costs is None else [each.to_json() for each in costs]
                for name in probed_names(devices())
                for costs in [known_probe(name)]
            },
        }
        typer.echo(json.dumps(document, allow_nan=False))
    else:
        _print(rows)
        if workshop:
            _print_verdict(rows)
    if any(row.state == "problem" for row in rows):
        raise typer.Exit(PROBLEM)


def _print_verdict(rows: object) -> None:
    wrong = [row.name for row in rows if row.state == "problem"]  # type: ignore[attr-defined]
    if wrong:
        typer.echo(f"\nNot ready for the workshop: {', '.join(wrong)}.")
    else:
        typer.echo("\nReady for the workshop.")


def _print(rows: object) -> None:
    from rich.table import Table
    from rich.text import Text

    from workbench.cli.console import plain_console

    table = Table(box=None, pad_edge=False, show_header=False)
    for row in rows:  # type: ignore[attr-defined]
        value = Text(row.value)
        if row.remedy:
            value.append(f"\n→ {row.remedy}", style="dim")
        table.add_row(MARKS[row.state], Text(row.name), value)
    plain_console().print(table)
