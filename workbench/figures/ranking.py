"""A ranking: names above bars, values at the right edge; shared by kernels and operators."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.figures import names, template
from workbench.figures.scale import time_scale

if TYPE_CHECKING:
    import plotly.graph_objects as go

ROW = 36
"""Pixels of one row: a line of text and a bar."""


class Bar(NamedTuple):
    """One bar of a row."""

    ns: float
    colour: str
    hover: str
    """Safe to draw."""


class Row(NamedTuple):
    """One name with its value in words and its bars, drawn one after the other."""

    name: str
    value: str
    bars: tuple[Bar, ...]


def ranking(title: str, subtitle: str, rows: Sequence[Row], *, axis: str) -> "go.Figure":
    """Draw rows from the top; ``title`` and ``subtitle`` are already safe to draw."""
    longest = max(sum(bar.ns for bar in row.bars) for row in rows)
    scale = time_scale(longest)
    drawn = template.figure(
        title,
        subtitle,
        height=136 + ROW * len(rows),
        xaxis={
            "title": {"text": f"{axis} ({scale.unit})"},
            "range": [0, longest / scale.size * 1.001],
            "fixedrange": True,
            "showgrid": False,
        },
        yaxis={
            "range": [len(rows) - 0.35, -0.75],
            "fixedrange": True,
            "showgrid": False,
            "showticklabels": False,
        },
        annotations=_labels(rows),
    )
    drawn.add_bar(**_bars(rows, scale.size))
    return drawn


def _bars(rows: Sequence[Row], size: float) -> dict[str, Any]:
    flat = []
    for number, row in enumerate(rows):
        at = 0.0
        for bar in row.bars:
            flat.append((number, at / size, bar))
            at += bar.ns
    return {
        "orientation": "h",
        "base": [start for _, start, _ in flat],
        "x": [bar.ns / size for _, _, bar in flat],
        "y": [number for number, _, _ in flat],
        "width": 0.32,
        "marker": {"color": [bar.colour for _, _, bar in flat], "line": {"width": 0}},
        "customdata": [bar.hover for _, _, bar in flat],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _labels(rows: Sequence[Row]) -> list[dict[str, Any]]:
    made = []
    for number, row in enumerate(rows):
        y = number - 0.17
        place: dict[str, Any] = {"xref": "paper", "yanchor": "bottom", "borderpad": 0}
        name = names.label(row.name)
        made.append(template.direct_label(name, x=0, y=y, xanchor="left", xshift=-2, **place))
        made.append(template.direct_label(row.value, x=1, y=y, xanchor="right", **place))
    return made
