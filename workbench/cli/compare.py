"""``workbench compare``: in what two Runs or traces differ, and which one is faster."""

import json
from pathlib import Path
from typing import Annotated

import typer


def compare(
    first: Annotated[Path, typer.Argument(help="A Run folder, a trace, or a folder of ranks.")],
    second: Annotated[Path, typer.Argument(help="The one to compare with it.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare two Runs or traces: what differs, faster or slower, and where it arose.

    A verdict needs step times measured without the profiler (wb.profile, wb.capture); traces alone
    are compared in everything else.
    """
    from workbench.run.compare import compare as compare_runs
    from workbench.run.source import open_run

    found = compare_runs(open_run(first), open_run(second))
    if as_json:
        typer.echo(json.dumps(found.to_json(), allow_nan=False, default=str))
    else:
        typer.echo(repr(found))
