"""Where a rank of a job that somebody launched writes its Run: ``FOLDER/rank3``, beside the others.

All ranks of a job write below one folder, on a shared disk or each on its own; opened, that folder
is one Run. A folder that an earlier job used is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.errors import RunError, SettingError
from workbench.parallel.launched import Launched, launched
from workbench.store.folder import read_record
from workbench.store.names import free_names, safe_name

PREFIX = "rank"
MOST_TRIED = 10_000


def rank_of_job() -> Launched | None:
    """The rank that this process is; ``None`` for one that was launched alone."""
    found = launched()
    return None if found is None or found.world_size < 2 else found


def checked_ranks(ranks: Sequence[int] | None) -> tuple[int, ...] | None:
    """The ranks that record, as they were given.

    Raises:
        SettingError: They are no whole numbers from 0 on.
    """
    if ranks is None:
        return None
    whole = all(
        isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0 for rank in ranks
    )
    if not whole or not ranks:
        raise SettingError(f"ranks={ranks!r} must name ranks by number, such as ranks=(0, 1).")
    return tuple(ranks)


def folder_of(target: Path, rank: Launched, *, base: Path) -> Path:
    """``target/rank3``; where an earlier job used ``target``, a numbered one beside it."""
    own = f"{PREFIX}{rank.rank}"
    number = 1
    name = safe_name(target.name)
    while number < MOST_TRIED:
        tried = target.parent / (name if number == 1 else f"{name}-{number}")
        if _is_free(base / tried, own, rank):
            return tried / own
        number += 1
    return target.parent / next(free_names(base / target.parent, name)) / own


def moved_text(target: Path, place: Path) -> str | None:
    """What is said where ``target`` was used by an earlier job; ``place`` is the rank's folder."""
    wanted = safe_name(target.name)
    if place.parent.name == wanted:
        return None
    return (
        f"{wanted!r} was there already: the ranks of this job are called {place.parent.name!r} "
        f"and lie in {place.parent}"
    )


def said_of(rank: Launched | None) -> dict[str, Any]:
    """What a Run remembers of the job: nothing that names a machine."""
    if rank is None:
        return {}
    return {
        "rank": rank.rank,
        "world_size": rank.world_size,
        "local_world_size": rank.local_size,
        "launched_by": rank.by,
        "job": rank.job,
    }


def _is_free(folder: Path, own: str, rank: Launched) -> bool:
    """Whether nobody used it, or only other ranks of this very job."""
    if (folder / own).exists() or (folder / "run.json").exists():
        return False
    for each in folder.glob(f"{PREFIX}*/run.json"):
        try:
            other = read_record(each.parent).effective
        except RunError:
            return False
        if (other.get("job"), other.get("world_size")) != (rank.job, rank.world_size):
            return False
    return True
