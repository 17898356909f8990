"""What each step's wait for data is spent on: a bar a step, divided by part."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured, nothing
from workbench.figures.scale import Scale, exact, time_scale
from workbench.figures.stacked import Bar, bars, stacked, steps_a_bar
from workbench.units import count_text, share_text, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

Times = NDArray[np.int64]

SEEN = 0.005
"""Parts of a smaller share cannot be seen in a bar, and are not named beside it."""
UNSEEN = "the inside of the loader was not recorded; use wb.profile, or cap.watch(loader)."
WHAT = "What the wait for data is spent on"
TOLD_OTHER = 0.03
"""Own choice: from this share of the wait on, it is said what "anything else" is."""
OTHER = {
    "blocked": "samples that wait outside the processor, not for file reads (network, lock, sleep)",
    "queued": "batches that their idle worker had not begun (sampler, way of the index)",
    "handed": "batches that lay ready while the loop's own thread had other work",
    "unseen": "batches made where nothing was recorded",
    "after": "what the wait still holds when the loader has given the batch",
    "nowhere": "waits for no batch that was recorded",
}
"""What ``other`` is, by the reasons of ``analysis.stalls.parts.OTHER``."""


def stall_parts(
    parts_ns: Mapping[str, Times | None] | None,
    *,
    numbers: Sequence[int] = (),
    whole_ns: Mapping[str, int | None] | None = None,
    other_by: Mapping[str, int] | None = None,
    who: str = "the loop",
    reason: str = UNSEEN,
) -> "go.Figure":
    """Draw every step's exposed wait for data by what the awaited batch was in.

    Args:
        parts_ns: Nanoseconds of every step by part; ``None`` = could not be seen.
        numbers: Numbers of the steps.
        whole_ns: The same over the whole window, for the title; the steps when not given.
        other_by: Nanoseconds of the part ``other`` by reason, over the same window.
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
    size = steps_a_bar(len(numbers))
    scale = time_scale(float(np.median(whole)) or float(whole.max()))
    sums = whole_ns or {name: int(values.sum()) for name, values in layers.items()}
    drawn = stacked(
        names.plain(headline(sums, float(whole.mean()), who)),
        names.plain(_subtitle(len(numbers), size, parts_ns) + _other(sums, other_by)),
        axis=f"exposed wait ({scale.unit})",
        steps=len(numbers),
    )
    for name in palette.STALLS:
        if name in layers:
            drawn.add_bar(
                **_layer(palette.stall(name), list(bars(layers[name], whole, numbers)), scale),
                showlegend=bool(layers[name].sum() >= SEEN * whole.sum()),
            )
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


def what_is_other(sums: Mapping[str, int | None], by: Mapping[str, int] | None) -> str | None:
    """What most of "anything else" is, where that is more than a few percent of the wait."""
    total, other = sum(ns for ns in sums.values() if ns), sums.get("other") or 0
    if not by or not total or other < TOLD_OTHER * total:
        return None
    told = [
        f"{OTHER[reason]} ({share_text(ns / total)})"
        for reason, ns in sorted(by.items(), key=lambda pair: -pair[1])
        if ns >= TOLD_OTHER * total
    ]
    return f"anything else is {'; '.join(told)}" if told else None


def _other(sums: Mapping[str, int | None], by: Mapping[str, int] | None) -> str:
    said = what_is_other(sums, by)
    return "" if said is None else f" · {said}"


def _subtitle(count: int, size: int, parts_ns: Mapping[str, Times | None]) -> str:
    text = f"{count_text(count)} step{'s' * (count != 1)}, under the profiler; "
    text += "by what the batch that was waited for was in"
    if size > 1:
        text += f" · a bar is the mean of {size} steps"
    unseen = [palette.stall(name).label for name, values in parts_ns.items() if values is None]
    if unseen:
        text += f" · not measured: {', '.join(unseen)}"
    return text


def _layer(look: palette.Category, made: Sequence[Bar], scale: Scale) -> dict[str, Any]:
    return {
        "name": look.label,
        "x": [bar.at for bar in made],
        "y": [bar.ns / scale.size for bar in made],
        "marker": template.filled(look),
        "customdata": [
            f"<b>{bar.which} · {look.label}</b><br>{exact(bar.ns)}<br>of {exact(bar.of_ns)} of "
            f"waiting ({share_text(bar.ns / bar.of_ns if bar.of_ns else None)})"
            for bar in made
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
