"""The chart of what collectives cost, with its table."""

from typing import Any, Protocol

from workbench.figures.collective_costs import collective_costs
from workbench.pages.charts import drawn_chart
from workbench.pages.static import StaticFigure
from workbench.pages.table import Column, Table


class Costs(Protocol):
    """What is drawn: the result of the benchmark of collectives."""

    @property
    def table(self) -> Any:
        """A row a measurement."""

    @property
    def links(self) -> Any:
        """Per back end and collective the fitted link."""

    @property
    def copy_gb_s(self) -> float | None:
        """The limit of the machine."""

    @property
    def world_size(self) -> int:
        """Ranks."""


def costs_chart(costs: Costs, collective: str) -> StaticFigure:
    """Time against size, a line a back end."""
    rows = costs.table[costs.table["collective"] == collective]
    links = {backend: link for (backend, kind), link in costs.links.items() if kind == collective}
    figure = collective_costs(
        rows, links, collective=collective, ranks=costs.world_size, copy_gb_s=costs.copy_gb_s
    )
    names = ("backend", "bytes", "repetitions", "median_ns", "least_ns", "bus_gb_s")
    table = Table(
        caption="Collectives",
        columns=(
            Column(name="back end", kind="name"),
            Column(name="size", kind="bytes"),
            Column(name="repetitions", kind="count"),
            Column(name="median", kind="time"),
            Column(name="least", kind="time"),
            Column(name="bus bandwidth (GB/s)", kind="number"),
        ),
        rows=tuple(tuple(row) for row in rows[list(names)].itertuples(index=False, name=None)),
    )
    return drawn_chart(figure, table, "A point a size with the fitted line, for each back end.")
