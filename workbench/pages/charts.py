"""Charts with their tables and alternative text: what ``run.figure(name)`` returns."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.figures import names
from workbench.figures.breakdown import breakdown
from workbench.figures.collectives import collective_bandwidth
from workbench.figures.comparison import ChangeLike, comparison
from workbench.figures.difference import Of, difference_bars
from workbench.figures.idle import idle_gaps
from workbench.figures.input import input_waits
from workbench.figures.kernels import kernel_times
from workbench.figures.operators import operator_times
from workbench.figures.ranks import rank_times
from workbench.figures.steps import step_times
from workbench.pages.difference import difference_table
from workbench.pages.escape import visible
from workbench.pages.frames import (
    Times,
    collectives_table,
    idle_table,
    kernels_table,
    operators_table,
    ranks_table,
    steps_table,
    waits_table,
)
from workbench.pages.parts import parts_table
from workbench.pages.static import StaticFigure
from workbench.pages.table import Column, Table
from workbench.pages.view import Breakdown

_WAITS = "A bar a step, divided into the wait and the rest."

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


def breakdown_chart(parts: Breakdown | None, **rest: Any) -> StaticFigure:
    """Where a step goes; ``None`` says that it was not measured, ``reason=`` why."""
    alt = "One bar divided into the parts of a step."
    return parts_chart(breakdown, parts, alt, unmeasured="the loop", **rest)


def steps_chart(
    step_ns: Times | None,
    *,
    warmup: int = 0,
    input_ns: Times | None = None,
    **rest: Any,
) -> StaticFigure:
    """Step times in order and their distribution."""
    figure = step_times(step_ns, warmup=warmup, input_ns=input_ns, **rest)
    table = steps_table([] if step_ns is None else step_ns, warmup=warmup, input_ns=input_ns)
    return drawn_chart(figure, table, "A point a step, and a histogram of the step times.")


def kernels_chart(frame: "pd.DataFrame | None", **rest: Any) -> StaticFigure:
    """The kernels with the longest total time."""
    table = None if frame is None else kernels_table(frame)
    return drawn_chart(kernel_times(frame, **rest), table, "A bar for each of the longest kernels.")


def operators_chart(frame: "pd.DataFrame | None", **rest: Any) -> StaticFigure:
    """The operators with the longest time."""
    table = None if frame is None else operators_table(frame)
    return drawn_chart(
        operator_times(frame, **rest), table, "A bar for each of the longest operators."
    )


def idle_chart(
    start: NDArray[np.int64] | None,
    end: NDArray[np.int64] | None,
    cause: NDArray[np.integer[Any]] | None,
    *,
    causes: Sequence[str],
    by_cause: Mapping[str, int | None],
    window_ns: int,
    device_label: str,
    **rest: Any,
) -> StaticFigure:
    """Idle time by cause, and its longest pieces in time."""
    figure = idle_gaps(
        start,
        end,
        cause,
        causes=causes,
        by_cause=by_cause,
        window_ns=window_ns,
        device_label=device_label,
        **rest,
    )
    alt = "A bar for each cause of idle time; below, a point for each long piece."
    return drawn_chart(figure, idle_table(by_cause, window_ns), alt)


def ranks_chart(frame: "pd.DataFrame | None", **rest: Any) -> StaticFigure:
    """A step of every rank, and how long it waits for the others."""
    table = None if frame is None else ranks_table(frame)
    return drawn_chart(rank_times(frame, **rest), table, "A bar a rank, divided into phases.")


def collectives_chart(
    calls: "pd.DataFrame | None", frame: "pd.DataFrame | None", **rest: Any
) -> StaticFigure:
    """Bytes and bus bandwidth of every collective; the table sums them by kind and group."""
    table = None if frame is None else collectives_table(frame)
    return drawn_chart(collective_bandwidth(calls, **rest), table, "A point a collective.")


def waits_chart(
    step_ns: Times | None,
    input_ns: Times | None,
    *,
    warmup: int = 0,
    **rest: Any,
) -> StaticFigure:
    """Waiting for data against whole steps."""
    table = None
    if step_ns is not None and input_ns is not None and len(step_ns) == len(input_ns):
        table = waits_table(step_ns, input_ns, warmup=warmup, numbers=rest.get("numbers"))
    return drawn_chart(input_waits(step_ns, input_ns, warmup=warmup, **rest), table, _WAITS)


def comparison_chart(
    a_ns: Times | None,
    b_ns: Times | None,
    change: ChangeLike | None,
    *,
    names_of: tuple[str, str] = ("before", "after"),
    **rest: Any,
) -> StaticFigure:
    """The step times of two runs, and the verdict."""
    figure = comparison(a_ns, b_ns, change, names_of=names_of, **rest)
    sides = [
        steps_table([] if side is None else side, warmup=0, input_ns=None).rows[0]
        for side in (a_ns, b_ns)
    ]
    columns = steps_table([], warmup=0, input_ns=None).columns
    table = Table(
        caption="Step times",
        columns=(Column(name="run"), *columns[1:]),
        rows=tuple((name, *row[1:]) for name, row in zip(names_of, sides, strict=True)),
    )
    return drawn_chart(figure, table, "Two rows of points, a point a step.")


def difference_chart(
    frame: "pd.DataFrame | None",
    *,
    of: Of,
    names_of: tuple[str, str],
    per: str = "step",
    **rest: Any,
) -> StaticFigure:
    """Where two runs differ, by category, family, kernel or operator."""
    figure = difference_bars(frame, of=of, names_of=names_of, per=per, **rest)
    table = None if frame is None else difference_table(frame, of, names_of, per)
    alt = "A bar a row: to the left of the line what takes less time, to the right what takes more."
    return drawn_chart(figure, table, alt)


def parts_chart(
    draw: "Callable[..., go.Figure]",
    parts: Breakdown | None,
    drawn: str,
    *,
    unmeasured: str,
    **rest: Any,
) -> StaticFigure:
    """The parts of a step as this figure shows them; ``unmeasured`` names whose are missing."""
    if parts is None:
        return drawn_chart(draw(None, total_ns=0, device_label=unmeasured, **rest), None, "")
    figure = draw(
        parts.parts_ns,
        total_ns=parts.total_ns,
        device_label=parts.label,
        steps=parts.steps,
        of_steps=parts.of_steps,
        doubt=parts.doubt,
        overhead=parts.overhead,
        **rest,
    )
    return drawn_chart(figure, parts_table(parts), drawn)


def named(chart: StaticFigure, whose: str) -> StaticFigure:
    """The same chart with a title that says first whose numbers these are."""
    chart.figure.layout.title.text = f"{names.plain(whose)}: {chart.figure.layout.title.text}"
    return StaticFigure(
        figure=chart.figure, table=chart.table, alt=f"{visible(whose)}: {chart.alt}"
    )


def drawn_chart(figure: "go.Figure", table: Table | None, drawn: str) -> StaticFigure:
    """The alternative text is the finding, then how it is drawn."""
    made = StaticFigure(figure=figure, table=table, alt="")
    alt = ". ".join(part for part in (made.title, made.subtitle, drawn) if part)
    return StaticFigure(figure=figure, table=table, alt=alt)
