"""Two runs side by side: their step times, and the verdict in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.scale import exact, time_scale
from workbench.units import count_text, share_text, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_POINTS = 500
GOLDEN = 0.6180339887498949
"""Multiples of it spread points evenly, without chance: the same data give the same picture."""

MARKS = {"faster": "▲", "slower": "▼", "cannot_tell": "≈"}


class ChangeLike(Protocol):
    """What is drawn of a ``statistics.change.Change``: b over a, with its interval."""

    @property
    def ratio(self) -> float | None:
        """Step time of b over that of a."""

    @property
    def low(self) -> float | None:
        """Lower end of the interval of ``ratio``."""

    @property
    def high(self) -> float | None:
        """Upper end of the interval of ``ratio``."""

    @property
    def verdict(self) -> str:
        """``faster``, ``slower`` or ``cannot_tell``."""

    @property
    def reason(self) -> str | None:
        """Why nobody can tell, and what would help."""


def comparison(
    a_ns: Sequence[float] | NDArray[np.int64] | None,
    b_ns: Sequence[float] | NDArray[np.int64] | None,
    change: ChangeLike | None,
    *,
    names_of: tuple[str, str] = ("before", "after"),
    per: Literal["step", "sample"] = "step",
    reason: str = "both runs need step times measured without the profiler; use wb.profile.",
) -> "go.Figure":
    """Draw the step times of two runs as rows of points with median and middle half.

    Args:
        a_ns: Step times of the first run, warm-up left out.
        b_ns: The same of the second run.
        change: The verdict on b against a.
        names_of: What the runs are called.
        per: Whether the times are of a step, or of a sample because the batches differ.
        reason: Said when there is nothing to draw.
    """
    sides = [np.asarray([] if s is None else s, dtype=np.float64) for s in (a_ns, b_ns)]
    if change is None or not all(len(side) for side in sides):
        return not_measured("Comparison", reason)
    limit = max(float(np.percentile(side, 99)) for side in sides) * 1.15
    scale = time_scale(float(np.median(sides[0])))
    beyond = sum(int((side > limit).sum()) for side in sides)
    drawn = template.figure(
        names.plain(headline(change, names_of, per)),
        names.plain(_subtitle(sides, beyond, change.reason)),
        height=272,
        xaxis={
            "title": {"text": f"time of a {per} ({scale.unit})"},
            "range": [0, limit / scale.size],
        },
        yaxis={"range": [1.5, -0.7], **template.NAMELESS},
    )
    for row, (side, name) in enumerate(zip(sides, names_of, strict=True)):
        colour = ("#949494", palette.category("compute").colour)[row]
        drawn.add_scatter(**_points(side[side <= limit], row, colour, scale.size, name))
        _summarise(drawn, side, row, scale.size, name)
    return drawn


def headline(change: ChangeLike, names_of: tuple[str, str], per: str = "step") -> str:
    """The verdict by word and shape, with its interval."""
    mark = MARKS.get(change.verdict, "≈")
    if change.ratio is None or change.low is None or change.high is None:
        what = names_of[1].removeprefix("with ")
        return f"{mark} cannot tell whether {what} is faster: no interval could be computed"
    if getattr(change, "too_noisy", False):
        return f"{mark} cannot tell: the measurements are too noisy to say anything"
    if getattr(change, "uneven", False):
        return f"{mark} cannot tell: the typical step and all steps together say different things"
    took = interval_text(change.ratio, change.low, change.high)
    word = change.verdict.replace("_", " ")
    of = "" if names_of[1].startswith("with ") else "of "
    return f"{mark} {word}: a {per} {of}{names_of[1]} takes {took} time"


def interval_text(ratio: float, low: float, high: float) -> str:
    """The one notation for a change with its interval, to stand before the word "time".

    ``31 % (28–34) less`` where the interval has one sign, ``between 4.0 % less and 5.0 % more``
    where it has both. Nothing takes less than no time: an interval of few steps ends there.
    """
    low = max(low, 0.0)
    if low <= 1 <= high:
        return f"between {share_text(1 - low)} less and {share_text(high - 1)} more"
    ends = sorted((abs(1 - low), abs(1 - high)))
    near, far = (share_text(end).removesuffix(" %") for end in ends)
    middle = share_text(abs(1 - ratio))
    if near == far:
        near, far = (f"{100 * end:.1f}" for end in ends)
        middle = f"{100 * abs(1 - ratio):.1f} %"
    return f"{middle} ({near}–{far}) {'less' if ratio < 1 else 'more'}"


def _subtitle(sides: Sequence[NDArray[np.float64]], beyond: int, reason: str | None) -> str:
    text = " against ".join(f"{count_text(len(side))} steps" for side in sides)
    text += (
        ", measured without the profiler · the box holds the middle half, the line is the median"
    )
    if beyond:
        text += f" · {count_text(beyond)} slowest beyond the axis"
    return f"{reason} · {text}" if reason else text


def _points(
    side: NDArray[np.float64], row: int, colour: str, size: float, name: str
) -> dict[str, Any]:
    stride = -(-len(side) // MOST_POINTS)
    drawn = side[::stride]
    spread = (np.arange(len(drawn)) * GOLDEN) % 1 - 0.5
    return {
        "name": names.label(name),
        "x": (drawn / size).tolist(),
        "y": (row + spread * 0.36).round(4).tolist(),
        "mode": "markers",
        "marker": {"color": colour, "size": 5, "opacity": 0.55},
        "customdata": [f"step {i * stride}<br>{exact(float(ns))}" for i, ns in enumerate(drawn)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _summarise(
    drawn: "go.Figure", side: NDArray[np.float64], row: int, size: float, name: str
) -> None:
    low, median, high = (float(v) / size for v in np.percentile(side, (25, 50, 75)))
    band = {"color": palette.INK, "width": 1}
    drawn.add_shape(
        type="rect", x0=low, x1=high, y0=row - 0.24, y1=row + 0.24, line=band, layer="above"
    )
    thick = {"color": palette.INK, "width": 3}
    drawn.add_shape(type="line", x0=median, x1=median, y0=row - 0.3, y1=row + 0.3, line=thick)
    text = f"{names.label(name)}  <b>{time_text(float(np.median(side)))}</b>"
    drawn.add_annotation(
        template.direct_label(text, x=0, xref="paper", y=row - 0.32, xanchor="left", xshift=-2)
        | {"yanchor": "bottom"}
    )
