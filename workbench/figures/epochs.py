"""The first epoch against the later ones: what making a batch takes, cold and warm."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.scale import exact, time_scale
from workbench.figures.stalls import SEEN
from workbench.units import bytes_text, count_text, significant, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

WHAT = "The first epoch against the later ones"
MOST = 24
APART = 1.2
"""Own choice: epochs whose batches take less than this many times as long are told as alike."""


class Epoch(NamedTuple):
    """One epoch; times are means over its batches, in nanoseconds."""

    number: int
    batches: int
    made_ns: float
    parts_ns: Mapping[str, float]
    storage_bytes: float | None


def epoch_batches(
    epochs: Sequence[Epoch] | None,
    *,
    reason: str = "fewer than two epochs were recorded; profile more steps, or a smaller data set.",
) -> "go.Figure":
    """Draw what making a batch takes in each epoch.

    Args:
        epochs: Epochs in order; fewer than two cannot be compared.
        reason: Said when there is nothing to draw.
    """
    if epochs is None or len(epochs) < 2:
        return not_measured(WHAT, reason)
    shown = epochs[:MOST]
    scale = time_scale(max(each.made_ns for each in shown))
    drawn = template.figure(
        names.plain(_headline(epochs)),
        names.plain(_subtitle(epochs)),
        height=320,
        barmode="stack",
        bargap=0.3,
        xaxis={"title": {"text": "epoch"}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": f"making a batch ({scale.unit})"}, "rangemode": "tozero"},
        showlegend=True,
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1, "traceorder": "reversed"},
        margin={"l": 6, "r": 16, "t": 72, "b": 48},
    )
    for part in palette.STALLS:
        values = [each.parts_ns.get(part, 0.0) for each in shown]
        if not any(values):
            continue
        look = palette.stall(part)
        drawn.add_bar(
            name=look.label,
            x=[each.number + 1 for each in shown],
            y=[ns / scale.size for ns in values],
            marker=template.filled(look),
            showlegend=sum(values) >= SEEN * sum(each.made_ns for each in shown),
            customdata=[
                f"<b>epoch {each.number + 1} · {look.label}</b><br>{exact(ns)} a batch<br>"
                f"of {exact(each.made_ns)}, {bytes_text(each.storage_bytes)} from storage"
                for each, ns in zip(shown, values, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    return drawn


def _headline(epochs: Sequence[Epoch]) -> str:
    first = epochs[0].made_ns
    count = sum(each.batches for each in epochs[1:])
    later = sum(each.made_ns * each.batches for each in epochs[1:]) / count
    times = f"{time_text(first)} in the first epoch, {time_text(later)} later"
    if first > APART * later:
        longer = f"{significant(first / later)} times as long{_why(epochs, count)}"
        return f"Making a batch takes {times}: {longer}"
    if later > APART * first:
        return f"Making a batch takes {times}: {significant(later / first)} times as long later"
    return f"Making a batch takes about as long in every epoch: {times}"


def _why(epochs: Sequence[Epoch], count: int) -> str:
    """What most of the longer first epoch is; nothing where no one part is most of it."""

    def more(value: Callable[[Epoch], float]) -> float:
        return value(epochs[0]) - sum(value(e) * e.batches for e in epochs[1:]) / count

    def part(*parts: str) -> float:
        return more(lambda each: sum(each.parts_ns.get(name, 0.0) for name in parts))

    half = more(lambda each: each.made_ns) / 2
    if part("oversubscription") >= half:
        return ", mostly for a free processor"
    read = more(lambda each: each.storage_bytes or 0.0)
    if read > (epochs[0].storage_bytes or 0.0) / 2 and part("storage", "other") >= half:
        return " when cold"
    return ""


def _subtitle(epochs: Sequence[Epoch]) -> str:
    text = f"{count_text(len(epochs))} epochs, {count_text(sum(e.batches for e in epochs))} batches"
    read = [each.storage_bytes for each in (epochs[0], epochs[-1])]
    if read[0] is not None and read[1] is not None:
        text += (
            f" · from storage {bytes_text(read[0])} a batch in the first epoch, "
            f"{bytes_text(read[1])} in the last"
        )
    if len(epochs) > MOST:
        text += f" · the first {MOST} are shown"
    return text
