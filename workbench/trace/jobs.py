"""Which traces of a folder belong to one job, where several of them claim the same rank.

Two files of one rank are no two ranks. They are copies, or recordings of other jobs: those of one
job have names that differ by numbers only, and tell the same number of ranks.
"""

from __future__ import annotations

import filecmp
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from workbench.trace.ranks import RankFile

_NUMBER = re.compile(r"\d+")
_PACKED = re.compile(r"\.(gz|zip)$")

Key = TypeVar("Key")


def separated(files: Sequence[RankFile]) -> list[list[RankFile]]:
    """The files by job, that with most ranks first; one list where nothing tells them apart.

    Args:
        files: In the order of their ranks and names. One that does not tell its rank stays with the
            first job.
    """
    known = [file for file in files if file.rank is not None]
    if all(same(group) for group in _grouped(known, [file.rank for file in known])):
        return [list(files)]
    jobs = _grouped(known, [(file.world_size, _stem(file.path.name)) for file in known])
    if len(jobs) < 2 or any(not each_once(job) for job in jobs):
        return [list(files)]
    jobs.sort(key=len, reverse=True)
    jobs[0] += [file for file in files if file.rank is None]
    return jobs


def each_once(files: Sequence[RankFile]) -> bool:
    """Whether every rank has one file, or copies of one."""
    return all(same(group) for group in _grouped(files, [file.rank for file in files]))


def firsts(files: Iterable[RankFile]) -> tuple[list[RankFile], list[RankFile]]:
    """The first file of every rank, and those that claim a rank that has one already."""
    kept: list[RankFile] = []
    left: list[RankFile] = []
    seen: set[int | None] = set()
    for file in files:
        (left if file.rank is not None and file.rank in seen else kept).append(file)
        seen.add(file.rank)
    return kept, left


def same(files: Sequence[RankFile]) -> bool:
    """Whether all files hold the same bytes."""
    first, *others = (file.path for file in files)
    try:
        return all(filecmp.cmp(first, other, shallow=False) for other in others)
    except OSError:
        return False


def _grouped(files: Sequence[RankFile], keys: Sequence[Key]) -> list[list[RankFile]]:
    groups: dict[Key, list[RankFile]] = {}
    for file, key in zip(files, keys, strict=True):
        groups.setdefault(key, []).append(file)
    return list(groups.values())


def _stem(name: str) -> str:
    """A name without its numbers, and without how it is packed."""
    return _NUMBER.sub("#", _PACKED.sub("", name.lower()))
