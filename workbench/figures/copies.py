"""Copies between host and devices: how large each was, and how fast."""

from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette, template
from workbench.figures.collectives import bytes_ticks
from workbench.figures.empty import not_measured
from workbench.figures.scale import decades, exact
from workbench.units import bytes_text, count_text, share_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MOST_POINTS = 2000
_SYMBOLS = {
    "HtoD": "triangle-right",
    "DtoH": "triangle-left",
    "DtoD": "circle",
    "PtoP": "diamond",
    "HtoH": "square",
}
_WAYS = {
    "HtoD": "host to device",
    "DtoH": "device to host",
    "DtoD": "on the device",
    "PtoP": "device to device",
    "HtoH": "on the host",
}


def copy_bandwidth(
    calls: "pd.DataFrame | None",
    table: "pd.DataFrame | None" = None,
    *,
    reason: str = "no copy with a known size was recorded.",
) -> "go.Figure":
    """Draw a point a copy: bytes against bandwidth, both logarithmic.

    Args:
        calls: kind, host_memory, bytes, total_ns, gb_s; a row a copy.
        table: The same by kind, with exposed_ns and hidden_share, for the title.
        reason: Said when there is nothing to draw.
    """
    if calls is None or not len(calls):
        return not_measured("Bandwidth of copies", reason)
    shown = calls.nlargest(MOST_POINTS, "bytes", keep="first")
    text = f"{count_text(len(calls))} cop{'y' if len(calls) == 1 else 'ies'} in the window"
    if len(shown) < len(calls):
        text += f", the {count_text(len(shown))} largest drawn"
    groups = sorted(shown.groupby(["kind", "host_memory"], dropna=False), key=lambda g: -len(g[1]))
    drawn = template.figure(
        names.plain(headline(calls, table)),
        names.plain(f"{text} · hollow: pageable memory of the host"),
        height=360,
        xaxis={"title": {"text": "size of the copy"}, "type": "log", **bytes_ticks(shown)},
        yaxis=decades("bandwidth (GB/s)"),
        showlegend=len(groups) > 1,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 1, "xanchor": "right"},
    )
    for (kind, memory), rows in groups:
        drawn.add_scatter(**_points(str(kind), memory if isinstance(memory, str) else None, rows))
    return drawn


def way(kind: str, memory: str | None) -> str:
    """A kind of copy in words, such as "host to device, pageable"."""
    said = _WAYS.get(kind, kind)
    return f"{said}, {memory}" if memory else said


def headline(calls: "pd.DataFrame", table: "pd.DataFrame | None") -> str:
    """How fast the kind that moves most is, and how much of it nothing hides."""
    moved: dict[tuple[str, str | None], list[int]] = {}
    columns = (calls[name].tolist() for name in ("kind", "host_memory", "bytes", "total_ns"))
    for kind, memory, size, took in zip(*columns, strict=True):
        sums = moved.setdefault((kind, memory if isinstance(memory, str) else None), [0, 0])
        sums[0] += size
        sums[1] += took
    kind, memory = max(moved, key=lambda group: moved[group][0])
    size, took = moved[kind, memory]
    said = f"Copies {way(kind, memory)} reach {bytes_text(size / took * 1e9)}/s"
    if table is not None:
        rows = table[(table["kind"] == kind) & (table["host_memory"].fillna("") == (memory or ""))]
        inside = float(rows["exposed_ns"].sum() + rows["hidden_ns"].sum())
        if inside > 0:
            share = float(rows["hidden_ns"].sum()) / inside
            said += f"; other work hides {share_text(share)} of their time"
    return said


def _points(kind: str, memory: str | None, rows: "pd.DataFrame") -> dict[str, Any]:
    label = way(kind, memory)
    said = [
        f"<b>{names.plain(label)}</b><br>{bytes_text(size)} in {exact(took)}<br>"
        f"{bytes_text(rate * 1e9)}/s"
        for size, took, rate in zip(
            rows["bytes"].tolist(), rows["total_ns"].tolist(), rows["gb_s"].tolist(), strict=True
        )
    ]
    symbol = _SYMBOLS.get(kind, "x")
    return {
        "name": names.plain(label),
        "x": [int(size) for size in rows["bytes"]],
        "y": [float(f"{rate:.6g}") for rate in rows["gb_s"]],
        "mode": "markers",
        "marker": {
            "color": palette.category("memory").colour,
            "symbol": f"{symbol}-open" if memory == "pageable" else symbol,
            "size": 9,
            "line": {"width": 1.5 if memory == "pageable" else 0},
        },
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }
