"""Which file of a folder is which rank of a job."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.errors import TraceError
from workbench.trace.cache import cached
from workbench.trace.filetypes import wrong_kind
from workbench.trace.formats import is_other_format
from workbench.trace.frames import Frames
from workbench.trace.header import open_header, rank_and_world, rank_in_name
from workbench.trace.jobs import firsts, same, separated
from workbench.trace.locate import locate
from workbench.trace.notes import Notes
from workbench.trace.source import SIZE_LIMIT, open_source
from workbench.trace.table import Violation
from workbench.trace.tail import distributed_info
from workbench.units import name_text

_ENDINGS = (".json", ".pfw", ".zip", ".gz", ".pb", ".pftrace", ".sqlite", ".csv", ".tsv")
_XLA_PROFILE, _XLA_CHROME = ".xplane.pb", ".trace.json.gz"
_NUMBER = re.compile(r"\d{1,6}")
_SHOWN = 8
_LONGEST = 80


@dataclass(frozen=True, kw_only=True)
class RankFile:
    """One trace of a job."""

    path: Path
    rank: int | None
    """``None`` when neither the header nor the file's name tells it."""
    world_size: int | None = None


class RankFiles(tuple[RankFile, ...]):
    """The traces of one job, by rank; ``violations`` tells duplicates, gaps and unknown ranks."""

    unreadable: tuple[str, ...]
    """Files that name a rank and cannot be read, each with the reason."""
    left_out: tuple[RankFile, ...]
    """Files whose rank another one stands for."""
    others: tuple["RankFiles", ...]
    """Other jobs in the same folder, which are no ranks of this one."""

    def __new__(
        cls,
        files: Iterable[RankFile],
        unreadable: Iterable[str] = (),
        *,
        others: Iterable["RankFiles"] = (),
    ) -> "RankFiles":
        """The files in their order, of each rank the first."""
        kept, left_out = firsts(files)
        made = super().__new__(cls, kept)
        made.unreadable = tuple(unreadable)
        made.left_out = tuple(left_out)
        made.others = tuple(others)
        return made

    @property
    def jobs(self) -> list["RankFiles"]:
        """This job and the others, each as if it were alone in the folder."""
        alone = RankFiles((*self, *self.left_out), self.unreadable)
        return [alone, *self.others]

    @property
    def violations(self) -> tuple[Violation, ...]:
        """What is missing or ambiguous, empty when every rank is there once."""
        return (
            *_other_jobs(self),
            *rank_violations((*self, *self.left_out)),
            *_unreadable(self.unreadable),
        )


def find_ranks(folder: str | Path) -> RankFiles:
    """Find the traces in a folder, and which rank each one is.

    The rank stands in the header (``distributedInfo``), else in the file's name: ``rank3``, or
    a number from 0 on by which alone the names differ. Traces of every format that ``read``
    takes are found, and whatever its ending one whose name tells a rank. Where files of other
    names claim the same ranks they are of other jobs: the one with most ranks is given, the
    rest as ``others``. Of each file the beginning is read, and the end where that does not tell
    the rank. Files that are no traces are passed over, and so is the Chrome JSON that XLA
    writes beside a profile of the same name.

    Raises:
        TraceError: There is no such folder, or no trace in it; says what was found.
    """
    folder = Path(folder)
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise TraceError(f"Cannot list {folder}: {error.strerror}.") from None
    twice = {
        entry.name.removesuffix(_XLA_PROFILE) + _XLA_CHROME
        for entry in entries
        if entry.name.endswith(_XLA_PROFILE)
    }
    found, unreadable = [], []
    for path in entries:
        usual, named = path.name.lower().endswith(_ENDINGS), rank_in_name(path.name) is not None
        if (usual or named) and path.name not in twice and path.is_file():
            peeked = _peek(path)
            if isinstance(peeked, RankFile):
                found.append(peeked)
            elif usual and named:
                unreadable.append(peeked)
    if not found:
        shown = ", ".join(name_text(entry) for entry in entries[:_SHOWN]) or "nothing"
        more = f" and {len(entries) - _SHOWN:,} more" if len(entries) > _SHOWN else ""
        raise TraceError(
            f"There is no trace in {folder} (found: {shown}{more}). Expected are files such as "
            "rank0.trace.json.gz, rank1.trace.json.gz: one torch.profiler trace per rank."
        )
    found = _numbered(found)
    found.sort(key=lambda file: (file.rank is None, file.rank or 0, file.path.name))
    first, *others = separated(found)
    return RankFiles(first, unreadable, others=map(RankFiles, others))


def ranks_of_one_job(paths: Sequence[Path]) -> RankFiles | None:
    """Several files as the ranks of one job, or ``None`` when they are not.

    They are when they lie in one folder and each tells another rank of the same number of ranks.
    """
    if len(paths) < 2 or len({path.absolute().parent for path in paths}) > 1:
        return None
    peeked = [_peek(path) for path in paths if path.is_file()]
    found = [file for file in peeked if isinstance(file, RankFile)]
    ranks = {file.rank for file in found} - {None}
    worlds = {file.world_size for file in found}
    if len(ranks) < len(paths) or len(worlds) > 1 or None in worlds:
        return None
    return RankFiles(sorted(found, key=lambda file: file.rank or 0))


def rank_violations(files: tuple[RankFile, ...]) -> tuple[Violation, ...]:
    """Duplicate, missing and unknown ranks of the files of one job."""
    by_rank: dict[int, list[str]] = {}
    for file in files:
        if file.rank is not None:
            by_rank.setdefault(file.rank, []).append(name_text(file.path))
    told = []
    twice = {rank: names for rank, names in by_rank.items() if len(names) > 1}
    if twice:
        shown = "; ".join(
            f"rank {rank}: {', '.join(names)}{_copies(files, rank)}"
            for rank, names in twice.items()
        )
        told.append(
            Violation(
                code="duplicate_ranks",
                message=f"Several files claim the same rank ({shown}). Keep one of each; "
                "until then the first one stands for the rank, and the others are left out.",
                count=len(twice),
            )
        )
    world = max((file.world_size or 0 for file in files), default=0)
    expected = max(world, max(by_rank, default=-1) + 1)
    missing = [rank for rank in range(min(expected, 1 << 20)) if rank not in by_rank]
    if by_rank and missing:
        shown = ", ".join(map(str, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        told.append(
            Violation(
                code="missing_ranks",
                message=f"{len(missing):,} of {expected:,} ranks have no file (ranks {shown}): "
                "a straggler among them cannot be seen.",
                count=len(missing),
                share=len(missing) / expected,
            )
        )
    unknown = [name_text(file.path) for file in files if file.rank is None]
    if unknown and len(files) > 1:
        shown = ", ".join(unknown[:_SHOWN])
        told.append(
            Violation(
                code="unknown_ranks",
                message=f"{len(unknown):,} files do not tell their rank ({shown}). Put it into the "
                "file name, such as rank3.trace.json.gz.",
                count=len(unknown),
            )
        )
    return tuple(told)


def _copies(files: tuple[RankFile, ...], rank: int) -> str:
    """Says so where all files of a rank hold the same bytes."""
    return ", the same file again" if same([f for f in files if f.rank == rank]) else ""


def _other_jobs(files: RankFiles) -> Iterator[Violation]:
    if not files.others:
        return
    jobs = (files, *files.others)
    shown = "; ".join(
        f"{_short(name_text(job[0].path))}: {len(job)} rank{'s' * (len(job) != 1)}"
        for job in jobs[:_SHOWN]
    )
    more = f"; and {len(jobs) - _SHOWN:,} more" if len(jobs) > _SHOWN else ""
    yield Violation(
        code="several_jobs",
        message=f"The folder holds {len(jobs):,} jobs, whose files claim the same ranks ({shown}"
        f"{more}). Only the first of these is shown here: give each a folder of its own; workbench "
        "analyze tells of each.",
        count=len(jobs),
    )


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _numbered(files: list[RankFile]) -> list[RankFile]:
    """Ranks from the numbers in the names, where no file tells one and they run from 0 on."""
    names = [file.path.name for file in files]
    numbers = [_NUMBER.findall(name) for name in names]
    same = len({_NUMBER.sub("#", name) for name in names}) == 1
    if len(files) < 2 or not same or any(file.rank is not None for file in files):
        return files
    varying = [column for column in zip(*numbers, strict=True) if len(set(column)) > 1]
    if len(varying) != 1 or {int(n) for n in varying[0]} != set(range(len(files))):
        return files
    return [replace(f, rank=int(n)) for f, n in zip(files, varying[0], strict=True)]


def _unreadable(reasons: tuple[str, ...]) -> Iterator[Violation]:
    if reasons:
        more = f" and {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
        yield Violation(
            code="unreadable_ranks",
            message=f"Files that name a rank cannot be read: {reasons[0]}{more}",
            count=len(reasons),
        )


def _peek(path: Path) -> RankFile | str:
    """The rank of a file, or why it is none."""
    try:
        source, head = open_source(path, SIZE_LIMIT)
        with source:
            if head.strip() and is_other_format(source, head, path):
                return RankFile(path=path, rank=rank_in_name(path.name))
            kind = wrong_kind(head)
            if kind is not None:
                return f"{name_text(path)} is {kind}"
            frames = Frames(source)
            place = locate(frames)
            if frames.ended and not frames.text().strip(b" \t\r\n]}"):
                name = name_text(path)
                return f"{name} holds no events: its profiler was never active or was stopped"
            header = open_header(place.header, Notes(name_text(path)))
            if place.form == "object" and "distributedInfo" not in header:
                known = cached(path) if source.packed else None
                if known is not None:
                    return RankFile(path=path, rank=known.rank, world_size=known.world_size)
                header["distributedInfo"] = distributed_info(frames)
    except TraceError as error:
        return str(error)
    rank, world = rank_and_world(header, path.name)
    return RankFile(path=path, rank=rank, world_size=world)
