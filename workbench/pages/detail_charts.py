"""Charts of single steps, launches, copies and ranks, with their tables and alternative text."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.figures.copies import copy_bandwidth
from workbench.figures.families import family_times
from workbench.figures.queue import Line, queue_length
from workbench.figures.rank_steps import Of, rank_steps
from workbench.figures.step_parts import step_parts
from workbench.figures.waterfall import waterfall
from workbench.pages.charts import drawn_chart, parts_chart
from workbench.pages.detail_tables import (
    copies_table,
    launches_table,
    rank_steps_table,
    step_parts_table,
)
from workbench.pages.frames import families_table
from workbench.pages.static import StaticFigure
from workbench.pages.view import Breakdown

if TYPE_CHECKING:
    import pandas as pd

Times = NDArray[np.int64]


def waterfall_chart(parts: Breakdown | None, **rest: Any) -> StaticFigure:
    """From compute alone to the measured step; ``None`` says that it was not measured."""
    alt = "A bar for compute alone, then one for each part behind the one before, then the whole."
    return parts_chart(waterfall, parts, alt, unmeasured="the device", **rest)


def step_parts_chart(
    parts_ns: Mapping[str, Times | None] | None,
    *,
    length_ns: Times | None = None,
    numbers: Sequence[int] = (),
    **rest: Any,
) -> StaticFigure:
    """What each step waits for."""
    figure = step_parts(parts_ns, length_ns=length_ns, numbers=numbers, **rest)
    table = None
    if parts_ns is not None and length_ns is not None:
        table = step_parts_table(parts_ns, length_ns, numbers)
    return drawn_chart(figure, table, "A bar a step, divided by cause.")


def queue_chart(
    lines: Sequence[Line] | None, frame: "pd.DataFrame | None", **rest: Any
) -> StaticFigure:
    """Launches that wait, over time; the table sums launches by stream."""
    table = None if frame is None else launches_table(frame)
    return drawn_chart(queue_length(lines, **rest), table, "A line over time, filled to zero.")


def families_chart(frame: "pd.DataFrame | None", **rest: Any) -> StaticFigure:
    """The families of kernels with the longest total time."""
    table = None if frame is None else families_table(frame)
    return drawn_chart(family_times(frame, **rest), table, "A bar for each family of kernels.")


def copies_chart(
    calls: "pd.DataFrame | None", frame: "pd.DataFrame | None", **rest: Any
) -> StaticFigure:
    """Bytes and bandwidth of every copy; the table sums them by kind."""
    table = None if frame is None else copies_table(frame)
    return drawn_chart(copy_bandwidth(calls, frame, **rest), table, "A point a copy.")


def rank_steps_chart(
    values_ns: NDArray[np.float64] | None,
    *,
    ranks: Sequence[str] = (),
    steps: Sequence[int] = (),
    of: Of = "wait",
    **rest: Any,
) -> StaticFigure:
    """A field for each rank and step."""
    figure = rank_steps(values_ns, ranks=ranks, steps=steps, of=of, **rest)
    table = None if values_ns is None else rank_steps_table(values_ns, ranks, steps)
    return drawn_chart(figure, table, "A row a rank, a column a step; the darker, the longer.")
