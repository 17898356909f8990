"""The ranks of one job beside each other in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from workbench.figures.palette import category
from workbench.units import NOT_MEASURED, share_text, time_text

if TYPE_CHECKING:
    Rank = Mapping[str, Any]

MOST_RANKS = 32
MOST_PARTS = 5
"""So many parts fit beside rank and step in 80 columns."""
LEAST_SHARE = 0.01
"""A part below this share of every rank's window has no column."""


class Line(NamedTuple):
    """One device of a rank, or its loop's thread."""

    name: str
    step_us: float | None
    shares: Mapping[str, float | None]
    """Part of the window that each category takes; ``None`` = not measured."""


def rank_name(rank: Rank) -> str:
    """A rank as a table names it."""
    return "?" if rank["rank"] is None else str(rank["rank"])


def ranks_table(ranks: Sequence[Rank]) -> Padding | None:
    """Where the window of every rank goes, a row each; ``None`` when no rank has parts."""
    lines = [line for rank in ranks for line in _lines(rank)]
    if not lines:
        return None
    parts = _largest(lines)
    title = "Ranks: where their windows go"
    if len(lines) > MOST_RANKS:
        title += f" (the first {MOST_RANKS} of {len(lines)}; --json has all)"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("rank", justify="left", no_wrap=True)
    for name in ("step", *(category(part).label for part in parts)):
        table.add_column(name, justify="right")
    for line in lines[:MOST_RANKS]:
        step = NOT_MEASURED if line.step_us is None else time_text(line.step_us * 1000)
        table.add_row(Text(line.name), step, *(share_text(line.shares.get(part)) for part in parts))
    return Padding(table, (1, 0, 0, 0))


def _lines(rank: Rank) -> Iterator[Line]:
    steps = rank["steps"]
    step = None if steps is None else steps["time_us"]["median"]
    divided = [
        (device["index"], device["breakdown_us"])
        for device in rank["devices"]
        if device["breakdown_us"] is not None
    ]
    if not divided and rank["host_breakdown_us"] is not None:
        divided = [(None, rank["host_breakdown_us"])]
    for index, parts in divided:
        total = sum(us or 0.0 for us in parts.values())
        if total <= 0:
            continue
        shares = {name: None if us is None else us / total for name, us in parts.items()}
        alone = len(divided) == 1
        name = rank_name(rank) if alone else f"{rank_name(rank)}, device {index}"
        yield Line(name, step, shares)


def _largest(lines: Sequence[Line]) -> list[str]:
    """The parts with the largest share on any rank, in the order of the breakdown."""
    most: dict[str, float] = {}
    for line in lines:
        for name, share in line.shares.items():
            most[name] = max(most.get(name, 0.0), share or 0.0)
    kept = sorted(most, key=lambda name: -most[name])[:MOST_PARTS]
    return [name for name in most if name in kept and most[name] >= LEAST_SHARE]
