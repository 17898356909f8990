"""A loader sweep: the step against the workers, a line for each variant, and the ceiling."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.scale import exact, time_scale
from workbench.units import time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

UNMEASURED = "no way of loading was measured; the sentence says why."
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#6B6ECF", "#8A8A00")
SYMBOLS = ("circle", "square", "triangle-up", "cross", "x", "star")
"""Lines differ by the shape of their points as well as by colour."""
APART = 0.025
"""Own choice: of the axis, what lies between the points of two lines."""
SUBTITLE = "steady step with its 95 % interval · diamond: chosen · ring: as it is"


def loader_sweep(
    rows: Sequence[Mapping[str, Any]] | None,
    ceiling_ns: float | None,
    *,
    title: str,
    reason: str = UNMEASURED,
) -> "go.Figure":
    """Draw the measured step times of a sweep.

    Args:
        rows: ``workers``, ``variant``, ``step_ns``, ``low_ns``, ``high_ns``, ``settings``,
            ``chosen`` and ``as_it_is`` of each way of loading.
        ceiling_ns: The step if the loader were free.
        title: The finding.
        reason: Said when there is nothing to draw.
    """
    shown = [row for row in rows or () if row["step_ns"] is not None]
    if not shown:
        return not_measured(title, reason)
    ends = [row[name] for row in shown for name in ("step_ns", "high_ns") if row[name] is not None]
    top = max(min(max(ends), 2 * max(row["step_ns"] for row in shown)), ceiling_ns or 0.0)
    scale = time_scale(top)
    variants = list(dict.fromkeys(row["variant"] for row in shown))
    drawn = template.figure(
        names.plain(title),
        SUBTITLE,
        height=360,
        xaxis=_workers_axis([row["workers"] for row in shown]),
        yaxis={
            "title": {"text": f"time of a step ({scale.unit})"},
            "range": [0, 1.08 * top / scale.size],
            "fixedrange": True,
        },
        showlegend=len(variants) > 1,
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1},
        margin={"l": 6, "r": 16, "t": 72, "b": 48},
    )
    if ceiling_ns is not None:
        _ceiling(drawn, ceiling_ns, scale.size)
    for number, variant in enumerate(variants):
        line = sorted((r for r in shown if r["variant"] == variant), key=lambda r: r["workers"])
        look = COLOURS[number % len(COLOURS)], SYMBOLS[number % len(SYMBOLS)]
        beside = _beside(number, len(variants), [row["workers"] for row in shown])
        drawn.add_scatter(**_line(variant, line, look, scale.size, beside))
    return drawn


def _beside(number: int, count: int, workers: Sequence[int]) -> float:
    """How far a line is moved, so that points of equal workers and time do not hide each other."""
    span = max(max(workers) - min(workers), 1)
    return APART * span * (number - (count - 1) / 2)


def _workers_axis(workers: Sequence[int]) -> dict[str, Any]:
    ticks = sorted(set(workers))
    pad = max(0.04 * (ticks[-1] - ticks[0]), 0.5)
    return {
        "title": {"text": "workers"},
        "tickmode": "array",
        "tickvals": ticks,
        "range": [ticks[0] - pad, ticks[-1] + pad],
        "fixedrange": True,
    }


def _ceiling(drawn: "go.Figure", ceiling_ns: float, size: float) -> None:
    level = ceiling_ns / size
    drawn.add_hline(y=level, line={"color": palette.INK, "width": 1.5, "dash": "dash"})
    drawn.add_annotation(
        **template.direct_label(
            f"if the loader were free: {time_text(ceiling_ns)}",
            x=0,
            y=level,
            xref="paper",
            xanchor="left",
            yanchor="top",  # few workers are seldom below it, so nothing is there
        )
    )


def _line(
    variant: str,
    rows: Sequence[Mapping[str, Any]],
    look: tuple[str, str],
    size: float,
    beside: float,
) -> dict[str, Any]:
    colour, symbol = look
    return {
        "name": names.label(variant),
        "x": [row["workers"] + beside for row in rows],
        "y": [row["step_ns"] / size for row in rows],
        "mode": "lines+markers",
        "line": {"color": colour, "width": 2},
        "marker": {
            "size": [14 if row["chosen"] else 9 for row in rows],
            "symbol": [_symbol(row, symbol) for row in rows],
            "color": colour,
            "line": {"color": colour, "width": 2},
        },
        "error_y": {
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


def _symbol(row: Mapping[str, Any], symbol: str) -> str:
    if row["chosen"]:
        return "diamond"
    return f"{symbol}-open" if row["as_it_is"] else symbol


def _beyond(row: Mapping[str, Any], name: str, sign: int) -> float:
    """How far an end of the interval lies from the point; 0 without one."""
    end = row[name]
    return 0.0 if end is None else max(0.0, float(sign * (end - row["step_ns"])))


def _hover(row: Mapping[str, Any]) -> str:
    parts = [f"<b>{names.label(row['settings'])}</b>", exact(row["step_ns"])]
    if row["low_ns"] is not None and row["high_ns"] is not None:
        parts.append(f"{time_text(row['low_ns'])} to {time_text(row['high_ns'])}")
    return "<br>".join(parts)
