"""A ranking: names above bars, values at the right edge; shared by all that is ranked."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.figures import names, template
from workbench.figures.scale import time_scale

if TYPE_CHECKING:
    import plotly.graph_objects as go

ROW = 36
"""Pixels of one row: a line of text and a bar."""
ROW_NAME, ROW_VALUE = "row-name", "row-value"
"""What draw.js knows the words of a row by: the value of a name follows it."""
LEGEND = 96
"""Pixels of the words for the colours: on a narrow page they stand below each other."""


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
    start: float = 0.0
    """Where the first bar begins, in nanoseconds."""


def ranking(
    title: str,
    subtitle: str,
    rows: Sequence[Row],
    *,
    axis: str,
    legend: Mapping[str, str] | None = None,
) -> "go.Figure":
    """Draw rows from the top; ``title`` and ``subtitle`` are already safe to draw.

    Args:
        title: The finding.
        subtitle: What is shown.
        rows: Names, values and bars.
        axis: What a bar's length is.
        legend: Label and colour of each part, where a row has several bars.
    """
    longest = max(row.start + sum(bar.ns for bar in row.bars) for row in rows)
    scale = time_scale(longest)
    drawn = template.figure(
        title,
        subtitle,
        height=height(len(rows)),
        xaxis={
            "title": {"text": f"{axis} ({scale.unit})"},
            "range": [0, longest / scale.size * 1.001],
            "fixedrange": True,
            "showgrid": False,
        },
        yaxis=row_axis(len(rows)),
        annotations=row_labels([(names.label(row.name), row.value) for row in rows]),
    )
    drawn.add_bar(**_bars(rows, scale.size))
    if legend:
        _explain(drawn, legend)
    return drawn


def height(rows: int) -> int:
    """Pixels of a figure of so many rows."""
    return 136 + ROW * rows


def row_axis(rows: int) -> dict[str, Any]:
    """The axis of rows, from the top, with room for a line of text above each bar."""
    return {"range": [rows - 0.35, -0.75], **template.NAMELESS}


def row_labels(
    rows: Sequence[tuple[str, str]], *, first: int = 0, yref: str = "y"
) -> list[dict[str, Any]]:
    """The name of each row above its bar, and its value at the right edge; both safe to draw.

    They fit a page of any width: what draws the figure on a page (draw.js) knows them by their
    names, and leaves out the middle of a name where its value needs the room.

    Args:
        rows: Name and value of each row.
        first: Number of the first row.
        yref: The axis of the rows.
    """
    made = []
    for number, (name, value) in enumerate(rows, start=first):
        y = number - 0.17
        place: dict[str, Any] = {"xref": "paper", "yref": yref, "yanchor": "bottom", "borderpad": 0}
        left: dict[str, Any] = {"xanchor": "left", "xshift": -2, "name": ROW_NAME}
        made.append(template.direct_label(name, x=0, y=y, **left, **place))
        right = {"xanchor": "right", "name": ROW_VALUE}
        made.append(template.direct_label(value, x=1, y=y, **right, **place))
    return made


def _explain(drawn: "go.Figure", legend: Mapping[str, str]) -> None:
    """Say what the colours are, in a line below the axis."""
    for label, colour in legend.items():
        drawn.add_bar(
            x=[None],
            y=[None],
            orientation="h",
            name=names.label(label),
            marker={"color": colour, "line": {"width": 0}},
            showlegend=True,
            hoverinfo="skip",
        )
    drawn.data[0].showlegend = False
    whole = drawn.layout.height + LEGEND
    drawn.update_layout(
        showlegend=True,
        barmode="overlay",
        height=whole,
        margin={"b": template.BOTTOM + LEGEND},
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "yref": "container",
            "y": 0,
            "yanchor": "bottom",
            "itemclick": False,
            "itemdoubleclick": False,
        },
    )


def _bars(rows: Sequence[Row], size: float) -> dict[str, Any]:
    flat = []
    for number, row in enumerate(rows):
        at = row.start
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
