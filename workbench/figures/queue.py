"""The queue of a device over time: how many launches wait, and when nothing does."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.scale import exact, time_scale
from workbench.units import count_text, share_text, significant, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_POINTS = 400
MOST_STREAMS = 4
"""Streams with a line of their own beside that of the whole device."""
_DASHES = ("dot", "dash", "dashdot", "longdash")


class Line(NamedTuple):
    """A queue in equal pieces of the window."""

    stream: int | None
    """``None``: the whole device."""
    mean: NDArray[np.float64]
    most: NDArray[np.int64]


def queue_length(
    lines: Sequence[Line] | None,
    *,
    window_ns: int = 0,
    empty_share: float | None = None,
    mean: float | None = None,
    step_starts_ns: Sequence[int] = (),
    device_label: str = "the device",
    reason: str = "no launch of a kernel is joined to it, or the clocks cannot be compared.",
) -> "go.Figure":
    """Draw the number of launches that wait, over the window.

    Args:
        lines: The whole device first, then streams; a value for each equal piece of the window.
        window_ns: Length of the window.
        empty_share: Share of the window in which nothing waits.
        mean: Mean length over the window.
        step_starts_ns: Where steps begin on the host, from the start of the window.
        device_label: "GPU 0 (A100)".
        reason: Said when there is nothing to draw.
    """
    if not lines or window_ns <= 0 or mean is None or empty_share is None:
        return not_measured("Launches that wait in the queue", reason)
    scale = time_scale(window_ns)
    shown = list(lines[: MOST_STREAMS + 1]) if len(lines) > 2 else [lines[0]]
    drawn = template.figure(
        names.plain(headline(mean, empty_share, device_label)),
        names.plain(
            f"window of {time_text(window_ns)} · longest queue {count_text(lines[0].most.max())}"
            " · what was launched before the recording is not in it"
        ),
        height=300,
        xaxis={
            "title": {"text": f"time in the window ({scale.unit})"},
            "range": [0, window_ns / scale.size],
            "showgrid": False,
        },
        yaxis={"title": {"text": "launches that wait"}, "rangemode": "tozero"},
        showlegend=len(shown) > 1,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 1, "xanchor": "right"},
    )
    for number, line in enumerate(shown):
        drawn.add_scatter(**_line(line, window_ns, scale.size, number))
    for at in list(step_starts_ns)[: 60 if len(step_starts_ns) <= 60 else 0]:
        if 0 < at < window_ns:
            x = at / scale.size
            look = {"color": palette.GRID, "width": 1}
            drawn.add_shape(type="line", yref="paper", x0=x, x1=x, y0=0, y1=1, line=look)
    return drawn


def headline(mean: float, empty_share: float, device_label: str) -> str:
    """Whether the device has work waiting for it."""
    if empty_share >= 0.5:
        return (
            f"Nothing waits in the queue of {device_label} for {share_text(empty_share)} "
            "of the window: the host does not keep ahead"
        )
    return (
        f"{significant(mean)} launches wait in the queue of {device_label} on average; "
        f"it is empty {share_text(empty_share)} of the window"
    )


def _line(line: Line, window_ns: int, unit: float, number: int) -> dict[str, Any]:
    pieces = len(line.mean)
    width = window_ns / pieces
    at = [(i + 0.5) * width / unit for i in range(pieces)]
    whose = "all streams" if line.stream is None else f"stream {line.stream}"
    said = [
        f"<b>{whose}</b><br>at {exact(round((i + 0.5) * width))}<br>"
        f"mean {significant(float(line.mean[i]))}, longest {count_text(int(line.most[i]))}"
        for i in range(pieces)
    ]
    first = number == 0
    return {
        "name": whose,
        "x": [round(x, 6) for x in at],
        "y": [float(f"{y:.5g}") for y in line.mean],
        "mode": "lines",
        "line": {
            "color": palette.category("compute").colour if first else palette.INK,
            "width": 1.5 if first else 1,
            "shape": "hvh",
            "dash": "solid" if first else _DASHES[(number - 1) % len(_DASHES)],
        },
        **({"fill": "tozeroy", "fillcolor": "rgba(0,114,178,0.18)"} if first else {}),
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }
