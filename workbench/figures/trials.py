"""The trials of a search: a row each, with the time that it came to and its interval."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.ranking import height, row_axis, row_labels
from workbench.figures.scale import exact, time_scale
from workbench.units import time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_ROWS = 30
KEPT, LEFT = "#0072B2", "#949494"
SUBTITLE = (
    "median of all its blocks, with the 95 % interval against the best before it · filled and "
    "blue: kept"
)


def trial_times(
    rows: Sequence[Mapping[str, Any]] | None, *, title: str, per: str = "step"
) -> "go.Figure":
    """Draw the measured trials in order, from the top.

    Args:
        rows: ``setting``, ``time_ns``, ``low_ns``, ``high_ns``, ``kept`` and ``reason`` of each.
        title: The finding.
        per: Whether the times are of a step, or of a sample because batch sizes differ.
    """
    drawn = [row for row in rows or () if row["time_ns"] is not None][:MOST_ROWS]
    if not drawn:
        return not_measured("Trials", "nothing was measured; call wb.tune with a larger budget.")
    ends = [row[name] or row["time_ns"] for row in drawn for name in ("time_ns", "high_ns")]
    scale = time_scale(max(ends))
    made = template.figure(
        names.plain(title),
        SUBTITLE,
        height=height(len(drawn)),
        xaxis={
            "title": {"text": f"time of a {per} ({scale.unit})"},
            "range": [0, max(ends) / scale.size * 1.03],
            "fixedrange": True,
        },
        yaxis=row_axis(len(drawn)),
        annotations=row_labels(
            [(names.label(row["setting"]), time_text(row["time_ns"])) for row in drawn]
        ),
    )
    made.add_scatter(**_points(drawn, scale.size))
    return made


def _points(rows: Sequence[Mapping[str, Any]], size: float) -> dict[str, Any]:
    colours = [KEPT if row["kept"] else LEFT for row in rows]
    return {
        "x": [row["time_ns"] / size for row in rows],
        "y": list(range(len(rows))),
        "mode": "markers",
        "marker": {
            "size": 11,
            "symbol": ["diamond" if row["kept"] else "circle-open" for row in rows],
            "color": colours,
            "line": {"width": 2, "color": colours},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [_beyond(row, "high_ns", 1) / size for row in rows],
            "arrayminus": [_beyond(row, "low_ns", -1) / size for row in rows],
            "color": palette.INK,
            "thickness": 1.5,
        },
        "customdata": [_hover(row) for row in rows],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _beyond(row: Mapping[str, Any], name: str, sign: int) -> float:
    """How far an end of the interval lies from the point; 0 without one."""
    end = row[name]
    return 0.0 if end is None else max(0.0, sign * (end - row["time_ns"]))


def _hover(row: Mapping[str, Any]) -> str:
    parts = [names.label(row["setting"]), exact(row["time_ns"])]
    if row["low_ns"] is not None and row["high_ns"] is not None:
        parts.append(f"{time_text(row['low_ns'])} to {time_text(row['high_ns'])}")
    parts.append(names.full(row["reason"]))
    return "<br>".join(part for part in parts if part)
