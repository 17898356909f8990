"""Collectives: how much each moved, and how fast."""

from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.scale import decades, exact
from workbench.units import bytes_text, count_text, significant

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MOST_POINTS = 2000
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star")


def collective_bandwidth(
    table: "pd.DataFrame | None",
    *,
    at_least: bool = False,
    reason: str = "no collective with a known size and group was recorded; record shapes.",
) -> "go.Figure":
    """Draw a point a collective: bytes against bus bandwidth, both logarithmic.

    Args:
        table: collective, group, bytes, transfer_ns, bus_gb_s; a row a call.
        at_least: Whether one rank alone was seen, so that waiting counts as transfer.
        reason: Said when there is nothing to draw.
    """
    known = None if table is None else table.dropna(subset=["bytes", "bus_gb_s"])
    if known is not None:
        known = known[(known["bytes"] > 0) & (known["bus_gb_s"] > 0)]
    if known is None or not len(known):
        return not_measured("Bandwidth of collectives", reason)
    shown = known.nlargest(MOST_POINTS, "bytes", keep="first")
    drawn = template.figure(
        names.plain(headline(known, at_least=at_least)),
        names.plain(_subtitle(len(known), len(shown), at_least=at_least)),
        height=360,
        xaxis={"title": {"text": "size of the buffer"}, "type": "log", **bytes_ticks(shown)},
        yaxis=decades("bus bandwidth (GB/s)"),
        showlegend=shown["collective"].nunique() > 1,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 1, "xanchor": "right"},
    )
    for number, (kind, rows) in enumerate(shown.groupby("collective", sort=True)):
        drawn.add_scatter(**_points(str(kind), rows, _SYMBOLS[number % len(_SYMBOLS)]))
    return drawn


def headline(table: "pd.DataFrame", *, at_least: bool) -> str:
    """How fast the most bytes travel."""
    moved = table.assign(bytes=table["bytes"].astype(float)).groupby("collective")["bytes"].sum()
    first = str(moved.idxmax())
    rate = float(table.loc[table["collective"] == first, "bus_gb_s"].median())
    reaches = "reaches at least" if at_least else "reaches"
    return f"The median {first.replace('_', '-')} {reaches} {significant(rate)} GB/s"


def _subtitle(total: int, shown: int, *, at_least: bool) -> str:
    text = f"{count_text(total)} collectives"
    if shown < total:
        text += f", the {count_text(shown)} largest drawn"
    if at_least:
        text += " · one rank alone: waiting for late ranks counts as transfer"
    return text


def _points(kind: str, rows: "pd.DataFrame", symbol: str) -> dict[str, Any]:
    said = [
        f"<b>{names.plain(kind.replace('_', '-'))}</b><br>{bytes_text(size)} in {exact(took)}<br>"
        f"{significant(rate)} GB/s"
        for size, took, rate in zip(
            rows["bytes"].tolist(),
            rows["transfer_ns"].tolist(),
            rows["bus_gb_s"].tolist(),
            strict=True,
        )
    ]
    return {
        "name": names.plain(kind.replace("_", "-")),
        "x": [int(size) for size in rows["bytes"]],
        "y": [float(f"{rate:.6g}") for rate in rows["bus_gb_s"]],
        "mode": "markers",
        "marker": {
            "color": palette.category("communication").colour,
            "symbol": symbol,
            "size": 8,
            "line": {"width": 0},
        },
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def bytes_ticks(rows: "pd.DataFrame") -> dict[str, Any]:
    """Ticks of a logarithmic axis of sizes in words, a power of ten each."""
    low, high = len(str(int(rows["bytes"].min()))) - 1, len(str(int(rows["bytes"].max())))
    ticks = [10**power for power in range(low, high + 1)]
    return {"tickvals": ticks, "ticktext": [bytes_text(tick) for tick in ticks]}
