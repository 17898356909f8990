"""The rate that the model could take against the rate that the loader brings."""

from typing import TYPE_CHECKING

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.units import number_text, significant, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

UNMEASURED = "steps without the loader, or the loader alone, were not measured; use wb.profile."
WHAT = "What the model needs and what the loader brings"


def loader_rate(
    need: float | None,
    brings: float | None,
    *,
    reached: float | None = None,
    unit: str = "samples/s",
    per_batch: float = 1.0,
    reason: str = UNMEASURED,
) -> "go.Figure":
    """Draw three rates as bars.

    Args:
        need: What the model takes if the loader is free, per second.
        brings: What the loader brings while nobody steps.
        reached: What the loop reaches.
        unit: What is counted.
        per_batch: How many of it are in a batch.
        reason: Said when there is nothing to draw.
    """
    if not need or not brings:
        return not_measured(WHAT, reason)
    rows = [
        ("the model can take", need, palette.category("compute").colour, "a step"),
        ("the loader brings", brings, palette.category("input").colour, "a batch"),
    ]
    if reached:
        rows.append(("the loop reaches", reached, palette.category("kernel_gap").colour, "a step"))
    top = max(rate for _, rate, _, _ in rows)
    drawn = template.figure(
        names.plain(_headline(need, brings, unit)),
        "without the profiler: steps on batches at hand, the loader alone, and both together",
        height=96 + 40 * len(rows) + 40,
        bargap=0.35,
        xaxis={"title": {"text": unit}, "rangemode": "tozero", "range": [0, 1.35 * top]},
        yaxis={"autorange": "reversed", "showgrid": False, **template.APART},
        margin={"l": 6, "r": 16, "t": 72, "b": 48},
    )
    drawn.add_bar(
        orientation="h",
        x=[rate for _, rate, _, _ in rows],
        y=[name for name, _, _, _ in rows],
        marker={"color": [colour for _, _, colour, _ in rows], "line": {"width": 0}},
        text=[
            f"{significant(rate)} · {time_text(per_batch / rate * 1e9)} {what}"
            for _, rate, _, what in rows
        ],
        textposition="outside",
        cliponaxis=False,
        customdata=[f"<b>{name}</b><br>{number_text(rate)} {unit}" for name, rate, _, _ in rows],
        hovertemplate="%{customdata}<extra></extra>",
    )
    return drawn


def _headline(need: float, brings: float, unit: str) -> str:
    said = f"The model can take {significant(need)} {unit}, the loader brings {significant(brings)}"
    if brings < need:
        return f"{said}: {significant(need / brings)} times too slow"
    return f"{said}: fast enough"
