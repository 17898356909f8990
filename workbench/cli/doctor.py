"""``workbench doctor``: what this machine can and cannot measure."""

import json
from typing import Annotated

import typer

MARKS = {"ok": "✓", "warning": "!", "problem": "✗"}
PROBLEM = 1


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check processors, memory, devices, versions and competing load.

    Exit code: 0 when nothing stands in the way, 1 when there is a problem.
    """
    from workbench.machine import preflight

    found = preflight()
    rows = found.rows
    if as_json:
        document = {
            "schema": "workbench.doctor/1",
            "checks": [
                {"name": r.name, "value": r.value, "state": r.state, "remedy": r.remedy}
                for r in rows
            ],
        }
        typer.echo(json.dumps(document, allow_nan=False))
    else:
        _print(rows)
    if any(row.state == "problem" for row in rows):
        raise typer.Exit(PROBLEM)


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
