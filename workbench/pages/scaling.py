"""The chart of scaling with its table."""

from collections.abc import Sequence

from workbench.analysis.scaling.points import Share
from workbench.figures.scaling import scaling_efficiency
from workbench.pages.charts import drawn_chart
from workbench.pages.static import StaticFigure
from workbench.pages.table import Column, Table

_SHARES = ("efficiency", "low", "high", "exposed", "wait", "slower")
_NAMES = (
    *("efficiency", "at least", "at most"),
    *("exposed transfer", "wait for ranks", "slower compute and the rest"),
)


def scaling_chart(shares: Sequence[Share], error: float | None) -> StaticFigure:
    """The efficiency of every number of ranks, what is lost, and the same as a table."""
    figure = scaling_efficiency(shares, error=error)
    table = Table(
        caption="Scaling",
        columns=(
            Column(name="ranks", kind="count"),
            Column(name="predicted", kind="flag"),
            Column(name="step", kind="time"),
            *(Column(name=name, kind="share") for name in _NAMES),
        ),
        rows=tuple(
            (s.world_size, s.predicted, s.step_ns, *(getattr(s, field) for field in _SHARES))
            for s in shares
        ),
    )
    return drawn_chart(figure, table, "A bar a number of ranks, divided into work and losses.")
