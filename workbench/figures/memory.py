"""Memory over time: who holds it, what is reserved, and where its peak is."""

from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.scale import time_scale
from workbench.units import bytes_text, share_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MOST_POINTS = 300
"""Moments that are drawn; each holds the most of its stretch."""
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_COLOURS = {
    "weights": palette.category("compute").colour,
    "gradients": palette.category("backward").colour,
    "optimizer": palette.category("optimizer").colour,
    "activations": palette.category("host_operators").colour,
    "temporary": palette.category("synchronization").colour,
    "input": palette.category("input").colour,
    "unknown": palette.category("unknown").colour,
}


def memory_over_time(
    frame: "pd.DataFrame | None",
    *,
    label: str = "the device",
    peak_bytes: int = 0,
    peak_ns: int = 0,
    absolute: bool = True,
    reason: str = "no memory was recorded: use Record(memory=True), or open a memory snapshot.",
) -> "go.Figure":
    """Draw live bytes stacked by who holds them, the reserved bytes as a line above.

    Args:
        frame: ``DeviceMemory.timeline``.
        label: "GPU 0".
        peak_bytes: The largest live bytes.
        peak_ns: When.
        absolute: Whether what was held before the recording is counted.
        reason: Said when there is nothing to draw.
    """
    if frame is None or not len(frame) or peak_bytes <= 0:
        return not_measured("Memory over time", reason)
    frame = _thinned(frame)
    first = int(frame["ts_ns"].iloc[0])
    span = max(int(frame["ts_ns"].iloc[-1]) - first, 1)
    time = time_scale(span)
    size, unit = next(each for each in _UNITS if peak_bytes >= each[0])
    layers = [name for name in _COLOURS if name in frame and frame[name].max() > 0]
    at = int(frame["live_bytes"].argmax())
    drawn = template.figure(
        names.plain(_headline(frame, layers, at, label, peak_bytes)),
        names.plain(
            f"over {span / time.size:.3g} {time.unit}"
            + ("" if absolute else " · counted from the start of the recording")
        ),
        height=340,
        xaxis={"title": {"text": f"time ({time.unit})"}, "showgrid": False},
        yaxis={"title": {"text": f"memory ({unit})"}, "rangemode": "tozero"},
        showlegend=True,
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1, "traceorder": "reversed"},
        margin={"l": 6, "r": 16, "t": 72, "b": 48},
    )
    x = [round((ts - first) / time.size, 6) for ts in frame["ts_ns"].tolist()]
    for name in layers or ["live_bytes"]:
        drawn.add_scatter(**_layer(frame, name, x, size, stacked=bool(layers)))
    if frame["reserved_bytes"].notna().all():
        drawn.add_scatter(**_reserved(frame, x, size))
    drawn.add_scatter(
        x=[round((peak_ns - first) / time.size, 6)],
        y=[float(f"{peak_bytes / size:.5g}")],
        mode="markers",
        marker={"symbol": "triangle-down", "size": 11, "color": palette.INK},
        name=f"peak {bytes_text(peak_bytes)}",
        hovertemplate=f"peak {bytes_text(peak_bytes)}<extra></extra>",
    )
    return drawn


def _headline(
    frame: "pd.DataFrame", layers: list[str], at: int, label: str, peak_bytes: int
) -> str:
    said = f"{label} holds {bytes_text(peak_bytes)} at most"
    if not layers:
        return said
    held = {name: float(list(frame[name])[at]) for name in layers}
    most = max(held, key=lambda name: held[name])
    share = min(1.0, held[most] / peak_bytes)
    return f"{said}, {share_text(share)} of it {_word(most)}"


def _word(name: str) -> str:
    return {"optimizer": "optimizer state", "unknown": "by nobody who was seen"}.get(name, name)


def _layer(
    frame: "pd.DataFrame", name: str, x: list[float], size: float, *, stacked: bool
) -> dict[str, Any]:
    values = frame[name].tolist()
    label = "live" if name == "live_bytes" else name
    colour = _COLOURS.get(name, _COLOURS["weights"])
    look: dict[str, Any] = {"stackgroup": "live"} if stacked else {"fill": "tozeroy"}
    return {
        "name": label,
        "x": x,
        "y": [float(f"{value / size:.5g}") for value in values],
        "mode": "lines",
        "line": {"color": colour, "width": 0.5, "shape": "hv"},
        "fillcolor": colour,
        "customdata": [f"<b>{label}</b> {bytes_text(value)}" for value in values],
        "hovertemplate": "%{customdata}<extra></extra>",
        **look,
    }


def _reserved(frame: "pd.DataFrame", x: list[float], size: float) -> dict[str, Any]:
    values = [int(value) for value in frame["reserved_bytes"].tolist()]
    return {
        "name": "reserved",
        "x": x,
        "y": [float(f"{value / size:.5g}") for value in values],
        "mode": "lines",
        "line": {"color": palette.INK, "width": 1.5, "dash": "dot", "shape": "hv"},
        "customdata": [f"<b>reserved</b> {bytes_text(value)}" for value in values],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _thinned(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Of each equal stretch the moment with most live bytes, so that no peak is lost."""
    if len(frame) <= MOST_POINTS:
        return frame.reset_index(drop=True)
    stretch = (frame.reset_index(drop=True).index * MOST_POINTS) // len(frame)
    places = frame.reset_index(drop=True).groupby(stretch)["live_bytes"].idxmax()
    return frame.reset_index(drop=True).loc[places].reset_index(drop=True)
