"""Matrix products: how large each is, how fast, and which could be faster."""

import math
from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.roofline import LARGEST, LEGEND, SMALLEST, finite, rate_axis, rate_unit
from workbench.figures.scale import decades
from workbench.units import share_text, significant, time_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


def gemm_speeds(
    table: "pd.DataFrame | None",
    *,
    source: str = "",
    reason: str = "no matrix product with its shapes was recorded.",
) -> "go.Figure":
    """Draw a mark a shape of a product, its area by time: FLOPs of a call against FLOPs a second.

    Args:
        table: name, dtype, batch, m, n, k, alignment, calls, time_ns, tflop_s, peak_share, advice.
        source: Where the peaks are from.
        reason: Said when there is nothing to draw.
    """
    known = None if table is None else table[table["m"].notna() & (table["tflop_s"] > 0)]
    if known is None or not len(known):
        return not_measured("Speed of matrix products", reason)
    said = known["advice"].astype(object).where(known["advice"].notna(), None)
    known = known.assign(advice=said)
    rows = [{str(k): v for k, v in row.items()} for row in known.to_dict("records")]
    total = sum(float(row["time_ns"]) for row in rows)
    unit, size = rate_unit(max(float(row["tflop_s"]) for row in rows))
    sizes = [flops_of_call(row) for row in rows]
    work, flops = work_unit(max(sizes))
    advised = [row for row in rows if row["advice"]]
    drawn = template.figure(
        names.plain(headline(rows, total)),
        names.plain(f"{len(rows)} shapes · the area of a mark is its time · peaks: {source}"),
        height=440,
        xaxis=decades(f"{work} of one call"),
        yaxis=rate_axis(unit),
        showlegend=True,
        legend=LEGEND,
        margin={"b": 108},
    )
    peaks = {
        str(row["dtype"]): float(row["tflop_s"]) / float(row["peak_share"])
        for row in rows
        if finite(row["peak_share"]) and row["peak_share"] > 0
    }
    for dtype, peak in sorted(peaks.items()):
        drawn.add_scatter(
            name=names.plain(f"peak of {dtype}"),
            x=[min(sizes) / flops, max(sizes) / flops],
            y=[peak * size, peak * size],
            mode="lines",
            line={"color": palette.INK, "width": 1.5},
            hoverinfo="skip",
        )
    plain = [row for row in rows if not row["advice"]]
    for label, chosen, colour in (
        ("nothing is advised", plain, palette.category("compute").colour),
        ("with advice", advised, palette.category("communication").colour),
    ):
        if chosen:
            drawn.add_scatter(**_points(chosen, (label, colour), total, (flops, size)))
    return drawn


def work_unit(largest_flops: float) -> tuple[str, float]:
    """The unit in which the largest amount of work reads best, and how many FLOPs it is."""
    for name, size in (("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6)):
        if largest_flops >= size:
            return name, size
    return "FLOP", 1.0


def flops_of_call(row: dict[str, Any]) -> int:
    """2 · batch · m · n · k."""
    return 2 * math.prod(int(row[name]) for name in ("batch", "m", "n", "k"))


def headline(rows: list[dict[str, Any]], total: float) -> str:
    """How fast the products are together, and what advice could win."""
    known = [row for row in rows if finite(row["peak_share"])]
    if not known:
        return "Matrix products, of whose types no peak is known"
    time = sum(float(row["time_ns"]) for row in known)
    share = sum(float(row["peak_share"]) * float(row["time_ns"]) for row in known) / time
    saving = sum(float(row["saving_ns"]) for row in rows if finite(row["saving_ns"]))
    said = f"Products reach {share_text(share)} of the peak, mean over their time"
    return f"{said}; advice could win {time_text(saving)} a step at most" if saving else said


def _points(
    rows: list[dict[str, Any]],
    look: tuple[str, str],
    total: float,
    units: tuple[float, float],
) -> dict[str, Any]:
    flops, rate = units
    said = []
    for row in rows:
        sizes = f"{row['batch']} × ({row['m']} × {row['k']}) · ({row['k']} × {row['n']})"
        text = (
            f"<b>{names.plain(str(row['name']))}</b> {names.plain(str(row['dtype']))}<br>{sizes}"
            f"<br>{time_text(float(row['time_ns']))} a step, "
            f"{significant(float(row['tflop_s']))} TFLOP/s"
        )
        said.append(f"{text}<br>{names.plain(str(row['advice']))}" if row["advice"] else text)
    return {
        "name": look[0],
        "x": [float(f"{flops_of_call(row) / flops:.6g}") for row in rows],
        "y": [float(f"{float(row['tflop_s']) * rate:.6g}") for row in rows],
        "mode": "markers",
        "marker": {
            "color": look[1],
            "size": [SMALLEST + LARGEST * math.sqrt(float(r["time_ns"]) / total) for r in rows],
            "opacity": 0.75,
            "line": {"width": 1},
        },
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }
