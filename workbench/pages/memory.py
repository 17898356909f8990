"""Memory of a Run: its chart, and the table of who holds the peak."""

from typing import TYPE_CHECKING, Any

from workbench.figures.memory import memory_over_time
from workbench.pages.charts import drawn_chart
from workbench.pages.static import StaticFigure
from workbench.pages.table import Column, Table

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 12


def memory_chart(
    timeline: "pd.DataFrame | None", holders: "pd.DataFrame | None", **rest: Any
) -> StaticFigure:
    """Memory over time; the table says who holds the peak."""
    table = None if holders is None or not len(holders) else holders_table(holders)
    words = "Areas over time, one on the other, by who holds the memory; the peak is marked."
    return drawn_chart(memory_over_time(timeline, **rest), table, words)


def holders_table(frame: "pd.DataFrame") -> Table:
    """Who holds the peak, largest first."""
    shown = frame.head(MOST_ROWS)
    names = ("category", "line", "module", "operator", "bytes", "allocations")
    columns = (
        Column(name="category"),
        *(Column(name=name, kind="name") for name in names[1:4]),
        Column(name="bytes", kind="bytes"),
        Column(name="allocations", kind="count"),
    )
    rows = tuple(tuple(row) for row in shown[list(names)].itertuples(index=False))
    return Table(
        caption="Who holds memory at its peak",
        columns=columns,
        rows=rows,
        left_out=len(frame) - len(shown),
    )
