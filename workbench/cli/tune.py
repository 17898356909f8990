"""``workbench tune``: search the settings of a training loop that a function gives."""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.errors import MissingExtraError, WorkloadError

if TYPE_CHECKING:
    from workbench.workload import Workload

INTERRUPTED = 130


def tune(
    function: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="A function without arguments that gives a wb.Workload; its module is looked for "
            "in the current folder, too.",
        ),
    ],
    budget: Annotated[
        str, typer.Option(help="How long it may take: '5 min', '90 s', or seconds.")
    ] = "5 min",
    only: Annotated[
        str | None,
        typer.Option(help="'loader', or names of settings with commas, such as precision,workers."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="Where trials are written; one that was begun is gone on with."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Search for settings that make a training loop faster, and print them as torch code.

    Exit code: 0 done, 2 something could not be run, 130 interrupted (the result so far is printed).
    """
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("torch", "torch", "workbench tune") from None
    from workbench.tuning import tune as search

    fields = only if only in {None, "loader"} else [n.strip() for n in str(only).split(",")]
    work = _workload(function)
    found = search(work, budget=budget, only=fields, folder=folder, progress=not as_json)
    if as_json:
        typer.echo(json.dumps(found.to_json(), allow_nan=False))
    else:
        typer.echo(repr(found))
        typer.echo(f"\n{found.code()}")
    if found.ended == "interrupted":
        raise typer.Exit(INTERRUPTED)


def _workload(function: str) -> "Workload":
    from workbench.workload import Workload

    work = _function(function)()
    if not isinstance(work, Workload):
        raise WorkloadError(
            f"{function} gave a {type(work).__name__}: let it return a workbench.Workload."
        )
    return work


def _function(name: str) -> Callable[[], Any]:
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise WorkloadError(
            f"{name!r} names no function: write MODULE:FUNCTION, such as train:workload."
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise WorkloadError(
            f"{name!r} cannot be loaded: {error}. Start it in the folder of {module}.py."
        ) from error
    except AttributeError as error:
        raise WorkloadError(f"{name!r} cannot be loaded: {error}.") from error
    if not callable(found):
        raise WorkloadError(f"{name!r} is a {type(found).__name__}, not a function.")
    function: Callable[[], Any] = found
    return function
