"""``workbench compare``: is the second Run faster?"""

import json
from pathlib import Path
from typing import Annotated

import typer


def compare(
    first: Annotated[Path, typer.Argument(help="Folder of the first Run.")],
    second: Annotated[Path, typer.Argument(help="Folder of the second Run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare the step times of two Runs: faster, slower, or cannot tell."""
    from workbench.run.compare import compare as compare_runs
    from workbench.run.source import open_run

    found = compare_runs(open_run(first), open_run(second))
    if as_json:
        typer.echo(json.dumps(found.to_json(), allow_nan=False, default=str))
    else:
        typer.echo(repr(found))
