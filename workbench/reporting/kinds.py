"""Which notebook makes a report of what was given."""

from importlib.resources import files
from pathlib import Path
from typing import Literal

from workbench.errors import ReportError
from workbench.run.run import Run

Kind = Literal["profile", "compare", "ranks", "loader"]
KINDS: tuple[Kind, ...] = ("profile", "compare", "ranks", "loader")
FOLDER = ("_notebooks", "reports")
NOTEBOOK = ".ipynb"
FEWEST_RANKS = 2


def chosen_kind(asked: str | None, source: Run | Path, *, base: bool, workload: bool) -> Kind:
    """The kind that was asked for, or the one for what was given.

    A base beside it is compared; many ranks are told as ranks; everything else is one profile.

    Raises:
        ReportError: There is no such kind, or it needs what was not given.
    """
    if asked is not None and asked not in KINDS:
        raise ReportError(f"kind={asked!r} is unknown: there are {', '.join(KINDS)}.")
    if asked == "compare" and not base:
        raise ReportError("a comparison needs two: give the base, and then the head.")
    for kind in KINDS:
        if kind == asked:
            return kind
    if base:
        return "compare"
    if not workload and traces_in(source) >= FEWEST_RANKS:
        return "ranks"
    return "profile"


def traces_in(source: Run | Path) -> int:
    """How many traces of one job there are, without reading them."""
    if isinstance(source, Run):
        return len(source.ranks)
    if not source.is_dir():
        return 1
    if (source / "run.json").is_file():
        from workbench.store.folder import read_record

        return len(read_record(source).traces)
    from workbench.run.joining import rank_folders

    if folders := rank_folders(source):
        return len(folders)
    return sum(1 for _ in source.glob("*.json*"))


def notebook_of(kind: Kind) -> bytes:
    """The notebook of a kind."""
    return files("workbench").joinpath(*FOLDER, f"{kind}{NOTEBOOK}").read_bytes()
