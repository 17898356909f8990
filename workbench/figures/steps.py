"""Step times: each step in order, and beside them their distribution."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.scale import Scale, exact, time_scale
from workbench.units import count_text, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_POINTS = 1000
BINS = 40
P95_NEEDS = 20
"""Below this many steps a 95th percentile is an accident of the slowest one (metrics.md)."""


def step_times(
    step_ns: Sequence[float] | NDArray[np.int64] | None,
    *,
    warmup: int = 0,
    input_ns: Sequence[float] | NDArray[np.int64] | None = None,
    numbers: Sequence[int] | None = None,
    measured: str = "without the profiler",
    reason: str = "no step time was recorded; profile the loop, or mark its steps.",
) -> "go.Figure":
    """Draw step times in order, warm-up in grey, with median and 95th percentile.

    Args:
        step_ns: Nanoseconds, a value a step.
        warmup: Leading steps that the change test counts as warm-up: shown, not counted.
        input_ns: Waiting for data inside each step, for the tooltip.
        numbers: The number of each step; counted from 0 when not given.
        measured: How the times were taken, for the subtitle.
        reason: Said when there is nothing to draw.
    """
    times = np.asarray([] if step_ns is None else step_ns, dtype=np.float64)
    steady = times[warmup:]
    if not len(steady):
        return not_measured("Step times", reason)
    waits = None if input_ns is None else np.asarray(input_ns, dtype=np.float64)
    scale = time_scale(float(np.median(steady)))
    low, high = _limits(steady)
    drawn = template.figure(
        names.plain(headline(steady)),
        names.plain(_subtitle(steady, warmup, measured)),
        height=320,
        xaxis={
            "title": {"text": "step"},
            "separatethousands": False,
            "domain": [0, 0.74],
            "showgrid": False,
            "dtick": _whole(len(times)),
        },
        yaxis={
            "title": {"text": f"step time ({scale.unit})"},
            "range": [low / scale.size, high / scale.size],
        },
        xaxis2={
            "title": {"text": "number of steps"},
            "domain": [0.78, 1],
            "anchor": "y",
            "showgrid": False,
            "dtick": _whole(len(steady)),
            "nticks": 3,
        },
        bargap=0.05,
        margin={"l": 6, "r": 128, "t": 72, "b": 48},
    )
    drawn.add_scatter(**_series(times, warmup, waits, scale, top=high, numbers=numbers))
    drawn.add_bar(**_distribution(steady, scale))
    _mark(drawn, steady, scale)
    return drawn


def headline(steady: NDArray[np.float64]) -> str:
    """Median, and the 95th percentile where there are enough steps for one."""
    text = f"A step takes {time_text(float(np.median(steady)))}"
    if len(steady) >= P95_NEEDS:
        return f"{text}; 95 % of them at most {time_text(float(np.percentile(steady, 95)))}"
    if len(steady) == 1:
        return text
    return f"{text} (from {time_text(float(steady.min()))} to {time_text(float(steady.max()))})"


def _subtitle(steady: NDArray[np.float64], warmup: int, measured: str) -> str:
    whose = "one step" if len(steady) == 1 else f"median of {count_text(len(steady))} steps"
    text = f"{whose}, measured {measured}"
    if warmup:
        text += f" · {count_text(warmup)} warm-up step{'s' if warmup > 1 else ''} (grey) left out"
    if len(steady) + warmup > MOST_POINTS:
        text += f" · drawn as medians of {bucket_size(len(steady) + warmup)} steps"
    return text


def bucket_size(count: int) -> int:
    """How many steps share a point so that at most ``MOST_POINTS`` are drawn."""
    return -(-count // MOST_POINTS)


def _whole(count: int) -> int | None:
    """The distance of ticks that keeps them whole on a short axis; ``None`` leaves it to plotly."""
    return 1 if count <= 8 else None


def _limits(steady: NDArray[np.float64]) -> tuple[float, float]:
    """The range of the time axis: the steady steps with room, at least a tenth around them."""
    low, high = float(steady.min()), float(steady.max())
    room = max(0.25 * (high - low), 0.1 * float(np.median(steady)))
    return max(0.0, low - room), high + room


def _series(
    times: NDArray[np.float64],
    warmup: int,
    waits: NDArray[np.float64] | None,
    scale: Scale,
    *,
    top: float,
    numbers: Sequence[int] | None,
) -> dict[str, Any]:
    number = range(len(times)) if numbers is None else numbers
    size = bucket_size(len(times))
    buckets = [slice(at, at + size) for at in range(0, len(times), size)]
    said, colours, symbols, heights = [], [], [], []
    for bucket in buckets:
        inside = times[bucket]
        median = float(np.median(inside))
        beyond = median > top
        heights.append((top * 0.995 if beyond else median) / scale.size)
        symbols.append("triangle-up" if beyond else "circle")
        warm = bucket.start < warmup
        colours.append("#949494" if warm else palette.category("compute").colour)
        last = bucket.start + len(inside) - 1
        first = number[bucket.start]
        which = f"step {first}" if size == 1 else f"steps {first} to {number[last]}"
        lines = [f"<b>{which}</b>{' (warm-up)' if warm else ''}", exact(median)]
        if waits is not None and len(waits) == len(times):
            lines.append(f"of it waiting for data: {exact(float(np.median(waits[bucket])))}")
        said.append("<br>".join(lines))
    return {
        "x": [number[bucket.start] for bucket in buckets],
        "y": heights,
        "mode": "markers",
        "marker": {"color": colours, "symbol": symbols, "size": 7},
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _distribution(steady: NDArray[np.float64], scale: Scale) -> dict[str, Any]:
    middle = float(np.median(steady))
    ends = min(float(steady.min()), 0.99 * middle), max(float(steady.max()), 1.01 * middle)
    counts, edges = np.histogram(steady, bins=min(BINS, max(5, len(steady) // 3)), range=ends)
    said = [
        f"{count_text(int(n))} step{'s' if n != 1 else ''}<br>"
        f"{time_text(float(low))} to {time_text(float(high))}"
        for n, low, high in zip(counts, edges[:-1], edges[1:], strict=True)
    ]
    return {
        "orientation": "h",
        "x": counts.tolist(),
        "y": ((edges[:-1] + edges[1:]) / 2 / scale.size).tolist(),
        "width": (np.diff(edges) * 0.9 / scale.size).tolist(),
        "marker": {"color": palette.category("compute").colour, "line": {"width": 0}},
        "xaxis": "x2",
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _mark(drawn: "go.Figure", steady: NDArray[np.float64], scale: Scale) -> None:
    """Lines for median and 95th percentile over both parts, named at the right edge."""
    marks = [("median", float(np.median(steady)), "solid")]
    if len(steady) >= P95_NEEDS:
        marks.append(("95 %", float(np.percentile(steady, 95)), "dot"))
    close = len(marks) == 2 and marks[1][1] - marks[0][1] < 0.09 * (
        _limits(steady)[1] - _limits(steady)[0]
    )
    for number, (name, at, dash) in enumerate(marks):
        y = at / scale.size
        line = {"color": palette.INK, "width": 1, "dash": dash}
        drawn.add_shape(type="line", xref="paper", x0=0, x1=1, y0=y, y1=y, line=line)
        drawn.add_annotation(
            template.direct_label(f"{name} {time_text(at)}", x=1, y=y, xref="paper", xshift=6)
            | {"xanchor": "left", "yshift": (-9, 9)[number] if close else 0}
        )
