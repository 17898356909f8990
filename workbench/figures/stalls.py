"""What each step's wait for data is spent on: a bar a step, divided by part."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured, nothing
from workbench.figures.scale import Scale, exact, time_scale
from workbench.units import count_text, share_text, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

Times = NDArray[np.int64]

MOST_BARS = 200
SEEN = 0.005
"""Parts of a smaller share cannot be seen in a bar, and are not named beside it."""
UNSEEN = "the inside of the loader was not recorded; use wb.profile, or cap.watch(loader)."
WHAT = "What the wait for data is spent on"


def stall_parts(
    parts_ns: Mapping[str, Times | None] | None,
    *,
    numbers: Sequence[int] = (),
    whole_ns: Mapping[str, int | None] | None = None,
    who: str = "the loop",
    reason: str = UNSEEN,
) -> "go.Figure":
    """Draw every step's exposed wait for data by what the awaited batch was in.

    Args:
        parts_ns: Nanoseconds of every step by part; ``None`` = could not be seen.
        numbers: Numbers of the steps.
        whole_ns: The same over the whole window, for the title; the steps when not given.
        who: Who waits: "GPU 0", "the loop".
        reason: Said when there is nothing to draw.
    """
    if parts_ns is None or not len(numbers):
        return not_measured(WHAT, reason)
    seen = {name: values for name, values in parts_ns.items() if values is not None}
    layers = {name: values for name, values in seen.items() if values.any()}
    if not layers:
        return nothing(f"No step of {who} waits for data", "every batch was there in time.")
    whole = np.sum(list(layers.values()), axis=0)
    size = -(-len(numbers) // MOST_BARS)
    scale = time_scale(float(np.median(whole)) or float(whole.max()))
    sums = whole_ns or {name: int(values.sum()) for name, values in layers.items()}
    drawn = template.figure(
        names.plain(headline(sums, float(whole.mean()), who)),
        names.plain(_subtitle(len(numbers), size, parts_ns)),
        height=320,
        barmode="stack",
        bargap=0.15,
        xaxis={
            "title": {"text": "step"},
            "separatethousands": False,
            "showgrid": False,
            "dtick": 1 if len(numbers) <= 12 else None,
        },
        yaxis={"title": {"text": f"exposed wait ({scale.unit})"}, "rangemode": "tozero"},
        showlegend=True,
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1, "traceorder": "reversed"},
        margin={"l": 6, "r": 16, "t": 72, "b": 48},
    )
    for name in palette.STALLS:
        if name in layers:
            _add(drawn, name, layers[name], whole, numbers, size=size, scale=scale)
    return drawn


def headline(sums: Mapping[str, int | None], mean_ns: float, who: str) -> str:
    """The part that takes most of the wait."""
    known = {name: ns for name, ns in sums.items() if ns}
    total = sum(known.values())
    most = max(known, key=lambda name: known[name])
    return (
        f"{share_text(known[most] / total)} of the wait for data is {palette.stall(most).waits}: "
        f"{who} waits {time_text(mean_ns)} a step"
    )


def _subtitle(count: int, size: int, parts_ns: Mapping[str, Times | None]) -> str:
    text = f"{count_text(count)} step{'s' * (count != 1)}, under the profiler; "
    text += "by what the batch that was waited for was in"
    if size > 1:
        text += f" · a bar is the mean of {size} steps"
    unseen = [palette.stall(name).label for name, values in parts_ns.items() if values is None]
    if unseen:
        text += f" · not measured: {', '.join(unseen)}"
    return text


def _add(
    drawn: "go.Figure",
    name: str,
    values: Times,
    whole: Times,
    numbers: Sequence[int],
    *,
    size: int,
    scale: Scale,
) -> None:
    look = palette.stall(name)
    at, heights, said = [], [], []
    for first in range(0, len(values), size):
        last = min(first + size, len(values)) - 1
        ns, wait = (float(side[first : last + 1].mean()) for side in (values, whole))
        which = f"step {numbers[first]}"
        if size > 1:
            which = f"steps {numbers[first]} to {numbers[last]}, mean"
        at.append((numbers[first] + numbers[last]) / 2)
        heights.append(ns / scale.size)
        said.append(
            f"<b>{which} · {look.label}</b><br>{exact(ns)}<br>of {exact(wait)} of waiting"
            f" ({share_text(ns / wait if wait else None)})"
        )
    drawn.add_bar(
        name=look.label,
        x=at,
        y=heights,
        marker=filled(look),
        showlegend=bool(values.sum() >= SEEN * whole.sum()),
        customdata=said,
        hovertemplate="%{customdata}<extra></extra>",
    )


def filled(look: palette.Category) -> dict[str, object]:
    """How a bar of this part is filled."""
    pattern = {
        "shape": "/" if look.hatched else "",
        "fillmode": "replace",
        "size": 6,
        "solidity": 0.5,
    }
    return {"color": look.colour, "line": {"width": 0}, "pattern": pattern}
