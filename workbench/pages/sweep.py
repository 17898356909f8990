"""A loader sweep as a chart with the table of its trials."""

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.figures.loader_sweep import loader_sweep
from workbench.pages.charts import drawn_chart
from workbench.pages.static import StaticFigure
from workbench.pages.table import Column, Table

ALT = "The step against the number of workers, a line for each variant, with the ceiling."


def sweep_chart(
    rows: Sequence[Mapping[str, Any]], ceiling_ns: float | None, *, title: str
) -> StaticFigure:
    """The step of each way of loading against its workers, with its table."""
    figure = loader_sweep(rows, ceiling_ns, title=title)
    return drawn_chart(figure, _table(rows) if rows else None, ALT)


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    columns = (
        Column(name="workers", kind="count"),
        Column(name="variant"),
        Column(name="step", kind="time"),
        Column(name="from", kind="time"),
        Column(name="to", kind="time"),
        Column(name="start-up", kind="time"),
        Column(name="memory", kind="bytes"),
        Column(name=""),
    )
    made = tuple(
        (
            row["workers"],
            row["variant"],
            row["step_ns"],
            row["low_ns"],
            row["high_ns"],
            row["startup_ns"] if row["workers"] else "none",
            row["memory_bytes"],
            _said(row),
        )
        for row in rows
    )
    return Table(caption="Ways of loading", columns=columns, rows=made)


def _said(row: Mapping[str, Any]) -> str:
    marks = ["chosen"] if row["chosen"] else []
    marks += ["as it is"] if row["as_it_is"] else []
    marks += [row["reason"]] if row["reason"] else []
    return ", ".join(marks)
