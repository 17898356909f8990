"""One Run over the folders that the ranks of a job wrote, each its own, beside each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import RunError
from workbench.run.reading import Watch, rank_of
from workbench.run.run import Run
from workbench.units import name_text

if TYPE_CHECKING:
    from workbench.store.record import RunRecord

_FOLDER = re.compile(r"rank\d+$")


def rank_folders(folder: Path) -> list[Path]:
    """The Runs of single ranks in a folder: ``rank0``, ``rank1`` and so on, in their order."""
    found = [
        each
        for each in folder.iterdir()
        if _FOLDER.match(each.name) and (each / "run.json").is_file()
    ]
    return sorted(found, key=lambda each: int(each.name.removeprefix("rank")))


def join(folder: Path, folders: Sequence[Path], *, watch: Callable[[Path], Watch]) -> Run:
    """The Run of all ranks; step times and what was measured beside the trace are the first's.

    Raises:
        RunError: They are of different jobs, or a trace is gone.
    """
    from workbench.store.folder import read_record
    from workbench.trace.ranks import RankFile, RankFiles

    records = [read_record(each) for each in folders]
    _refuse_others(folder, folders, records)
    files = []
    for each, record in zip(folders, records, strict=True):
        for name in record.traces:
            if not (each / name).is_file():
                raise RunError(f"{each} is not whole: {name} named in its run.json is gone.")
            number = int(each.name.removeprefix("rank"))
            world = record.effective.get("world_size")
            files.append(RankFile(path=each / name, rank=number, world_size=world))
    told = RankFiles(files).violations
    return Run(
        name=name_text(folder.resolve()),
        ranks=[
            rank_of(
                file.path,
                rank=file.rank,
                on_cpu=str(records[0].effective.get("device") or "").startswith("cpu"),
                job=told,
                several=len(files) > 1,
                watch=watch,
            )
            for file in files
        ],
        record=records[0],
        folder=folder,
        place=folders[0].absolute(),
        traces=[file.path for file in files],
        notes=[violation.message for violation in told],
    )


def _refuse_others(folder: Path, folders: Sequence[Path], records: Sequence[RunRecord]) -> None:
    """Ranks of two jobs have no step in common."""
    jobs: dict[tuple[object, object], list[str]] = {}
    for each, record in zip(folders, records, strict=True):
        key = (record.effective.get("job"), record.effective.get("world_size"))
        jobs.setdefault(key, []).append(each.name)
    if len(jobs) > 1:
        shown = "; ".join(", ".join(names) for names in jobs.values())
        raise RunError(
            f"The ranks in {folder} are of {len(jobs)} jobs ({shown}): put those of one job into a "
            "folder of its own."
        )
