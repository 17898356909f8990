"""Subjects beyond the first look: charts and tables of a Run that a page folds away."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from workbench.errors import RunError
from workbench.figures.empty import reason_of
from workbench.pages import detail_tables as tables
from workbench.pages.folded import Folded
from workbench.pages.gaps import gaps_table
from workbench.run.breakdowns import MOST_RANKS, doubt
from workbench.run.charts import chart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from workbench.pages.table import Table
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run

Subject = Literal[
    "breakdowns",
    "gaps",
    "loader",
    "steps",
    "families",
    "launches",
    "copies",
    "phases",
    "communication",
    "memory",
    "roof",
    "ranks",
]

TITLES: dict[Subject, str] = {
    "breakdowns": "Where a step of each rank goes",
    "gaps": "The longest idle gaps, and what the host did meanwhile",
    "loader": "Inside the loader: what the wait for data is spent on, worker by worker",
    "steps": "Step by step: what each step waits for, and what is different in slow ones",
    "families": "Kernels by family",
    "launches": "Launches: the queue over time, delays, short kernels",
    "copies": "Copies: size, bandwidth, and what hides them",
    "phases": "Forward, backward, optimizer; modules; operators by shape",
    "communication": "Communication by process group",
    "memory": "Memory over time: who holds it, and its peak",
    "roof": "How near the roof: operators, products, modules",
    "ranks": "Ranks step by step: who waits for whom, and when",
}
_CHARTS: dict[Subject, tuple[str, ...]] = {
    "breakdowns": ("breakdown",),
    "gaps": (),
    "loader": ("stalls", "loader_lanes", "loader_rate", "epochs"),
    "steps": ("waterfall", "step_parts"),
    "families": ("families",),
    "launches": ("queue",),
    "copies": ("copies",),
    "phases": (),
    "communication": ("communication",),
    "memory": ("memory",),
    "roof": ("roofline", "roof_waterfall", "gemms", "module_tree"),
    "ranks": ("rank_steps",),
}
_OF_DEVICES = frozenset({"breakdown", "waterfall", "step_parts", "queue"})


def more(run: Run, subject: Subject, rank: RankAnalysis) -> Folded:
    """The charts and tables on one subject; charts have their tables beside them.

    Of several ranks a page shows the chart of collectives openly, so that it is not repeated here.
    """
    if subject not in TITLES:
        raise RunError(f"no subject is called {subject!r}; there are {', '.join(TITLES)}.")
    chosen = run.ranks[:MOST_RANKS] if subject == "breakdowns" else (rank,)
    shown_above = subject == "communication" and run.job is not None
    charts = [
        chart(run, name, one, device)
        for name in (() if shown_above else _CHARTS[subject])
        for one in chosen
        for device in (tuple(one.device_time) if name in _OF_DEVICES else ()) or (None,)
    ]
    if subject in (
        "loader",
        "roof",
    ):  # most loops lack some of them; why is among what was not measured
        charts = [each for each in charts if reason_of(each.figure) is None]
    return Folded(title=TITLES[subject], charts=charts, tables=tuple(_tables(subject, rank)))


def _tables(subject: Subject, rank: RankAnalysis) -> Iterator[Table]:
    from workbench.run.tables import outliers

    found = rank.details
    wanted: list[tuple[pd.DataFrame | None, Callable[..., Table]]] = []
    if subject == "gaps":
        wanted.append((found.gaps, partial(gaps_table, doubt=doubt(rank))))
    elif subject == "steps":
        wanted.append((outliers(rank), tables.outliers_table))
    elif subject == "phases":
        wanted.append((found.phases, tables.phases_table))
        wanted.append((found.modules, tables.modules_table))
        wanted.append((found.operator_shapes, tables.shapes_table))
    elif subject == "communication":
        wanted.append((found.groups, tables.groups_table))
    for frame, made in wanted:
        if frame is not None and len(frame):
            yield made(frame)
