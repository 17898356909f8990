"""Input waits: how much of each step is spent waiting for the next batch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.scale import Scale, exact, time_scale
from workbench.units import count_text, share_text, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_BARS = 200


def input_waits(
    step_ns: Sequence[float] | NDArray[np.int64] | None,
    input_ns: Sequence[float] | NDArray[np.int64] | None,
    *,
    warmup: int = 0,
    numbers: Sequence[int] | None = None,
    measured: str = "without the profiler",
    reason: str = "no wait for the data loader was recorded; let cap.watch or wb.profile see it.",
) -> "go.Figure":
    """Draw every step as its wait for data and the rest.

    Args:
        step_ns: Nanoseconds, a value a step.
        input_ns: Of it waiting for the next batch.
        warmup: Leading steps that the change test counts as warm-up: left out.
        numbers: The number of each step, warm-up included; counted from 0 when not given.
        measured: How the times were taken, for the subtitle.
        reason: Said when there is nothing to draw.
    """
    steps = np.asarray([] if step_ns is None else step_ns, dtype=np.float64)
    waits = np.asarray([] if input_ns is None else input_ns, dtype=np.float64)
    if len(steps) != len(waits):
        return not_measured("Waiting for data", reason)
    counted = (range(len(steps)) if numbers is None else numbers)[warmup:]
    steps, waits = steps[warmup:], waits[warmup:]
    if not len(steps) or steps.sum() <= 0:
        return not_measured("Waiting for data", reason)
    size = -(-len(steps) // MOST_BARS)
    scale = time_scale(float(np.median(steps)))
    subtitle = f"{count_text(len(steps))} step{'s' * (len(steps) != 1)}, measured {measured}"
    if warmup:
        subtitle += f" · {count_text(warmup)} warm-up step{'s' if warmup > 1 else ''} left out"
    if size > 1:
        subtitle += f" · a bar is the mean of {size} steps"
    drawn = template.figure(
        names.plain(headline(steps, waits)),
        names.plain(subtitle),
        height=320,
        barmode="stack",
        bargap=0.15,
        xaxis={"title": {"text": "step"}, "separatethousands": False, "showgrid": False},
        yaxis={"title": {"text": f"time ({scale.unit})"}, "rangemode": "tozero"},
        margin={"l": 6, "r": 104, "t": 72, "b": 48},
    )
    at, wait, rest, said = _bars(steps, waits, size, scale, numbers=counted)
    for name, values, colour in (
        ("wait for data", wait, palette.category("input").colour),
        ("rest of the step", rest, "#949494"),
    ):
        drawn.add_bar(
            name=name,
            x=at,
            y=values,
            marker={"color": colour, "line": {"width": 0}},
            customdata=said,
            hovertemplate="%{customdata}<extra></extra>",
        )
    _name_layers(drawn, wait[-1], rest[-1], max(map(sum, zip(wait, rest, strict=True))))
    return drawn


def headline(steps: NDArray[np.float64], waits: NDArray[np.float64]) -> str:
    """The share of all the steps that goes into waiting."""
    share = float(waits.sum() / steps.sum())
    return (
        f"Waiting for data takes {share_text(share)} of a step: "
        f"{time_text(float(waits.mean()))} of {time_text(float(steps.mean()))}"
    )


def _bars(
    steps: NDArray[np.float64],
    waits: NDArray[np.float64],
    size: int,
    scale: Scale,
    *,
    numbers: Sequence[int],
) -> tuple[list[float], list[float], list[float], list[str]]:
    at, wait, rest, said = [], [], [], []
    for first in range(0, len(steps), size):
        step = float(steps[first : first + size].mean())
        waited = float(waits[first : first + size].mean())
        last = min(first + size, len(steps)) - 1
        shown, shown_last = numbers[first], numbers[last]
        at.append((shown + shown_last) / 2)
        wait.append(waited / scale.size)
        rest.append(max(0.0, step - waited) / scale.size)
        which = f"step {shown}" if size == 1 else f"steps {shown} to {shown_last}, mean"
        said.append(
            f"<b>{which}</b><br>waiting {exact(waited)}<br>of {exact(step)}"
            f" ({share_text(waited / step if step else None)})"
        )
    return at, wait, rest, said


def _name_layers(drawn: "go.Figure", wait: float, rest: float, top: float) -> None:
    """Name both layers beside the last bar, apart from each other on an axis up to ``top``."""
    place: dict[str, Any] = {"xref": "paper", "xanchor": "left", "xshift": 6}
    apart = 0.08 * top
    low, high = wait / 2, wait + rest / 2
    if high - low < apart:
        high = low + apart
    drawn.add_annotation(template.direct_label("wait for data", x=1, y=low, **place))
    drawn.add_annotation(template.direct_label("the rest", x=1, y=high, **place))
