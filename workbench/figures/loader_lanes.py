"""Worker processes as lanes on one clock with the waits of the loop or the gaps of the device."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.scale import Scale, exact, time_scale
from workbench.figures.stalls import UNSEEN
from workbench.units import count_text, share_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

WHAT = "The loader's workers beside the waits for data"
LABELS = {"decode": "samples: read and decode"}
"""Of stages that a lane does not divide further."""
HEIGHT, LEAST_HEIGHT = 34, 280
FULL, BESIDE = 0.7, 0.3
"""Thickness of bars, as a share of the lane."""


Bar = tuple[int, int, str, int]
"""A stretch of a lane: start and end in nanoseconds, what it is, the number of the batch or -1."""
Link = tuple[int, str, int]
"""When a batch was made, in which lane, and when it was delivered."""


class Frame(NamedTuple):
    """The stretch that is drawn."""

    start: int
    end: int
    scale: Scale
    above: str
    """The lane of who waits."""


def loader_lanes(
    lanes: Mapping[str, Sequence[Bar]] | None,
    waits: Sequence[Bar] = (),
    *,
    links: Sequence[Link] = (),
    start_ns: int = 0,
    end_ns: int = 0,
    shown: int = 0,
    of: int = 0,
    who: str = "the loop",
    fetching: float | None = None,
    workers: int = 0,
    reason: str = UNSEEN,
) -> "go.Figure":
    """Draw who made which batch when, and who waited meanwhile.

    Args:
        lanes: Bars (start, end, part, batch) by worker.
        waits: The same of the exposed wait, by the part that took most of each stretch.
        links: From the end of each fetch to the delivery of its batch.
        start_ns: Where the axis begins.
        end_ns: Where it ends.
        shown: How many waits for a batch are shown.
        of: How many there were.
        who: Who waits: "GPU 0", "the loop".
        fetching: Workers that fetched at once on average during the waits.
        workers: Worker processes.
        reason: Said when there is nothing to draw.
    """
    if not lanes or end_ns <= start_ns:
        return not_measured(WHAT, reason)
    scale = time_scale(float(end_ns - start_ns))
    above = f"{who} waits for data"
    frame = Frame(start_ns, end_ns, scale, above)
    order = [above, *lanes]
    drawn = template.figure(
        names.plain(_headline(waits, end_ns - start_ns, who, fetching, workers)),
        names.plain(_subtitle(shown, of, linked=bool(links))),
        height=max(LEAST_HEIGHT, 120 + HEIGHT * len(order)),
        barmode="overlay",
        xaxis={
            "title": {"text": f"time ({scale.unit})"},
            "range": [0, (end_ns - start_ns) / scale.size],
            "showgrid": True,
        },
        yaxis={
            "type": "category",
            "categoryorder": "array",
            "categoryarray": list(reversed(order)),
            "showgrid": False,
            **template.APART,
        },
        showlegend=True,
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1},
        margin={"l": 6, "r": 16, "t": 72, "b": 48},
    )
    bars = [(above, bar) for bar in waits]
    bars += [(lane, bar) for lane, some in lanes.items() for bar in some]
    for part in palette.STALLS:
        mine = [(lane, bar) for lane, bar in bars if bar[2] == part]
        if mine:
            _add(drawn, part, mine, frame)
    _join(drawn, links, frame)
    return drawn


def _headline(
    waits: Sequence[Bar], span: int, who: str, fetching: float | None, workers: int
) -> str:
    waited = sum(end - start for start, end, _, _ in waits)
    said = f"Here {who} waits for data {share_text(min(1.0, waited / span))} of the time"
    if fetching is None or not workers:
        return said
    of = f"{workers} worker{'s' * (workers != 1)}"
    return f"{said}; meanwhile {fetching:.1f} of {of} fetch batches"


def _subtitle(shown: int, of: int, *, linked: bool) -> str:
    text = f"{count_text(of)} batch{'es' * (of != 1)}, under the profiler"
    if shown < of:
        text = (
            f"The {shown} of {count_text(of)} batches that were waited for longest together, "
            "under the profiler"
        )
    return text + ("; a line joins a batch to the wait that it ended" if linked else "")


def _add(drawn: "go.Figure", part: str, mine: Sequence[tuple[str, Bar]], frame: Frame) -> None:
    look = palette.stall(part)
    label = LABELS.get(part, look.label)
    base, width, said, thick = [], [], [], []
    for lane, (start, end, _, batch) in mine:
        low, high = max(start, frame.start), min(end, frame.end)
        base.append((low - frame.start) / frame.scale.size)
        width.append((high - low) / frame.scale.size)
        # A thread of its own sends, beside the next batch: both are to be seen.
        thick.append(BESIDE if part == "transfer" and lane != frame.above else FULL)
        which = f"batch {batch}" if batch >= 0 else "no batch"
        said.append(f"<b>{names.plain(lane)} · {label}</b><br>{which}<br>{exact(end - start)}")
    drawn.add_bar(
        orientation="h",
        name=label,
        x=width,
        base=base,
        y=[lane for lane, _ in mine],
        width=thick,
        marker=template.filled(look),
        customdata=said,
        hovertemplate="%{customdata}<extra></extra>",
    )


def _join(drawn: "go.Figure", links: Sequence[Link], frame: Frame) -> None:
    """A line from where a batch was made to the wait that it ended."""
    x: list[float | None] = []
    y: list[str | None] = []
    for made, lane, delivered in links:
        if made >= frame.start:
            x += [(at - frame.start) / frame.scale.size for at in (made, delivered)] + [None]
            y += [lane, frame.above, None]
    if x:
        drawn.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"width": 1, "color": palette.INK, "dash": "dot"},
            hoverinfo="skip",
            showlegend=False,
        )
