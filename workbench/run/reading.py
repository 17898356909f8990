"""From a trace file to the analyses of its ranks; it is read when first asked, or watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from workbench.errors import TraceError
from workbench.run.rank import RankAnalysis
from workbench.trace.table import Trace, Violation
from workbench.units import name_text

Watch = AbstractContextManager[Callable[[int], None] | None]
"""Entered while a trace is read; gives what is told the number of bytes of text so far."""


def unwatched(path: Path) -> Watch:
    """Nobody looks how far reading has come."""
    return nullcontext()


def rank_of(
    path: Path,
    *,
    rank: int | None = None,
    alone: bool = False,
    on_cpu: bool = False,
    job: Sequence[Violation] = (),
    several: bool = False,
    watch: Callable[[Path], Watch] = unwatched,
) -> RankAnalysis:
    """The analyses of one trace file, read when first needed.

    ``alone`` marks the only trace of a Run of ours: its name says rank 0 also where no job with
    ranks ran. ``on_cpu`` says that its loop ran on the CPU, ``job`` what is wrong with the files of
    all ranks together, ``several`` that there are more. ``watch`` is entered while the file is
    read; what it gives is told the bytes read.
    """
    place = path.absolute()  # it is read later, perhaps from another current folder

    def read() -> Trace:
        from workbench.trace.cache import open_trace

        try:
            with watch(path) as progress:
                return open_trace(place, progress=progress)
        except TraceError as error:
            if several:
                raise TraceError(f"{error} To look at the other ranks, move it away.") from None
            raise

    return RankAnalysis(
        source=name_text(path), rank=rank, read=read, alone=alone, on_cpu=on_cpu, job=job
    )


def ranks_of(path: Path, *, watch: Callable[[Path], Watch] = unwatched) -> list[RankAnalysis]:
    """The analyses of a trace file, which is read now: one for each rank that it holds."""
    from workbench.trace.split import ranks_in_file, split_ranks

    whole = rank_of(path, watch=watch)
    if not ranks_in_file(whole.trace):
        return [whole]

    def part(place: int) -> Callable[[], Trace]:
        return lambda: split_ranks(rank_of(path, watch=watch).trace)[place]

    return [
        RankAnalysis(source=name_text(path), rank=trace.rank, read=part(place))
        for place, trace in enumerate(split_ranks(whole.trace))
    ]
