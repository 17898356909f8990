"""Operators against the roof of their device: what arithmetic and memory allow at most."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.scale import decades
from workbench.units import share_text, significant, time_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MOST_POINTS = 400
LARGEST = 46
SMALLEST = 6
"""Pixels of the marks of all time, and of the least."""
LEGEND = {"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0, "xanchor": "left"}
REGIMES = {
    "compute": ("limited by arithmetic", "compute"),
    "bandwidth": ("limited by memory", "memory"),
    "overhead": ("mostly their own start", "host_other"),
}


def roofline_points(
    table: "pd.DataFrame | None",
    *,
    peaks: Mapping[str, float] | None = None,
    bytes_per_s: float | None = None,
    source: str = "",
    kinds: "pd.DataFrame | None" = None,
    reason: str = "no operator with a known roof was recorded.",
) -> "go.Figure":
    """Draw a mark an operator, its area by time: FLOPs a byte against FLOPs a second.

    What computes no FLOPs (copies, normalisation, elementwise) stands at the left edge, as high as
    its bandwidth reaches below the slope of the memory.

    Args:
        table: name, shapes, kind, dtype, time_ns, intensity, tflop_s, gb_s, roof_share, regime.
        peaks: FLOPs a second by type.
        bytes_per_s: Bandwidth of the memory.
        source: Where the peaks are from.
        kinds: The same summed by kind of work, drawn as open diamonds.
        reason: Said when there is nothing to draw.
    """
    if table is None or not bytes_per_s or not table["regime"].notna().any():
        return not_measured("Distance to the roof", reason)
    shown = table[table["regime"].notna()].nlargest(MOST_POINTS, "time_ns")
    total = float(shown["time_ns"].sum())
    known, types = peaks or {}, shown["dtype"].dropna().unique()
    used = {name: known[name] for name in types if name in known}
    left, right = _span(shown, used, bytes_per_s)
    unit, size = rate_unit(max(used.values(), default=bytes_per_s * right) / 1e12)
    drawn = template.figure(
        names.plain(headline(shown)),
        names.plain(f"roof: {source} · the area of a mark is its time · {_edge(shown)}"),
        height=480,
        xaxis=_axis("FLOPs a byte", left, right),
        yaxis=rate_axis(unit),
        showlegend=True,
        legend=LEGEND,
        margin={"b": 108},
    )
    for name, peak in sorted(used.items(), key=lambda each: each[1]):
        drawn.add_scatter(**_roof(name, peak, bytes_per_s, (left, right), size))
    for regime, (label, colour) in REGIMES.items():
        rows = shown[shown["regime"] == regime]
        if len(rows):
            look = palette.category(colour).colour
            drawn.add_scatter(**_points(rows, (label, look), total, left, size))
    if kinds is not None and len(kinds):
        drawn.add_scatter(**_kinds(kinds, left, size))
    return drawn


def rate_unit(largest_tflop_s: float) -> tuple[str, float]:
    """The unit in which the largest rate reads best, and how many of it are a TFLOP/s."""
    return ("TFLOP/s", 1.0) if largest_tflop_s >= 1 else ("GFLOP/s", 1e3)


def rate_axis(unit: str) -> dict[str, Any]:
    """A logarithmic axis of rates, its numbers written out."""
    return decades(unit)


def headline(shown: "pd.DataFrame") -> str:
    """How near the roof all of it is, and what is farthest."""
    time, distance = float(shown["time_ns"].sum()), float(shown["distance_ns"].sum())
    first = shown.sort_values("distance_ns", ascending=False).iloc[0]
    said = f"Operators reach {share_text(1 - distance / time)} of their roof"
    return f"{said}; {first['name']} is farthest, {time_text(float(first['distance_ns']))} a step"


def _edge(shown: "pd.DataFrame") -> str:
    without = float(shown["time_ns"][shown["flops"].fillna(0) == 0].sum())
    share = share_text(without / float(shown["time_ns"].sum()))
    return f"at the left edge, by bandwidth: {share} of the time, without FLOPs"


def _span(
    shown: "pd.DataFrame", peaks: Mapping[str, float], bytes_per_s: float
) -> tuple[float, float]:
    known = [float(n) for n in shown["intensity"].dropna() if n > 0]
    known += [peak / bytes_per_s for peak in peaks.values()] or [1.0]
    return 10.0 ** (math.floor(math.log10(min(known))) - 1), 10.0 ** math.ceil(
        math.log10(max(known)) + 0.3
    )


def _axis(title: str, left: float, right: float) -> dict[str, Any]:
    span = [math.log10(left) - 0.1, math.log10(right)]
    return {**decades(title), "range": span}


def _roof(
    name: str, peak: float, bytes_per_s: float, span: tuple[float, float], size: float
) -> dict[str, Any]:
    left, right = span
    ridge = peak / bytes_per_s
    said = (
        f"<b>{names.plain(name)}: {significant(peak / 1e12)} TFLOP/s</b><br>"
        f"memory: {significant(bytes_per_s / 1e9)} GB/s<br>"
        f"ridge at {significant(ridge)} FLOPs a byte"
    )
    return {
        "name": names.plain(f"roof of {name}"),
        "x": [left, ridge, max(right, ridge)],
        "y": [left * bytes_per_s / 1e12 * size, peak / 1e12 * size, peak / 1e12 * size],
        "mode": "lines",
        "line": {"color": palette.INK, "width": 1.5},
        "customdata": [said] * 3,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def place(row: Mapping[str, Any], left: float) -> tuple[float, float]:
    """Where an operator stands; without FLOPs at the left edge."""
    if row["flops"] and row["intensity"] > 0:
        return float(row["intensity"]), float(row["tflop_s"])
    return left, float(row["gb_s"]) * left / 1e3


def _points(
    rows: "pd.DataFrame", look: tuple[str, str], total: float, left: float, size: float
) -> dict[str, Any]:
    records = [{str(k): v for k, v in row.items()} for row in rows.to_dict("records")]
    spots = [place(row, left) for row in records]
    sizes = [SMALLEST + LARGEST * math.sqrt(float(row["time_ns"]) / total) for row in records]
    return {
        "name": names.plain(look[0]),
        "x": [float(f"{x:.6g}") for x, _ in spots],
        "y": [float(f"{y * size:.6g}") for _, y in spots],
        "mode": "markers",
        "marker": {"color": look[1], "size": sizes, "opacity": 0.75, "line": {"width": 1}},
        "customdata": [_said(row) for row in records],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _said(row: Mapping[str, Any]) -> str:
    shapes = names.plain(str(row["shapes"])[:80]) if row.get("shapes") else ""
    return (
        f"<b>{names.plain(str(row['name']))}</b><br>{shapes}<br>"
        f"{time_text(float(row['time_ns']))} a step, {share_text(float(row['roof_share']))} of the "
        f"roof<br>{significant(float(row['tflop_s']))} TFLOP/s, "
        f"{significant(float(row['gb_s']))} GB/s<br>"
        f"at most {time_text(float(row['distance_ns']))} to win"
    )


def _kinds(kinds: "pd.DataFrame", left: float, size: float) -> dict[str, Any]:
    """Families of work, each at its own mean."""
    spots, said = [], []
    for row in kinds.to_dict("records"):
        time, flops, moved = (float(row[name] or 0) for name in ("time_ns", "flops", "bytes"))
        if not time or not moved:
            continue
        numbers = {"flops": flops, "intensity": flops / moved}
        spots.append(place({**numbers, "tflop_s": flops / time / 1e3, "gb_s": moved / time}, left))
        said.append(
            f"<b>all {names.plain(str(row['kind']))}</b><br>{time_text(time)} a step, "
            f"{share_text(float(row['roof_share']))} of the roof"
        )
    return {
        "name": "by kind of work",
        "x": [float(f"{x:.6g}") for x, _ in spots],
        "y": [float(f"{y * size:.6g}") for _, y in spots],
        "mode": "markers",
        "marker": {"symbol": "diamond-open", "size": 11, "color": palette.INK},
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def finite(value: Any) -> bool:
    """Whether a number is known."""
    return value is not None and bool(np.isfinite(float(value)))
