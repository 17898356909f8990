"""Idle gaps: how long a device did nothing, why, and when."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.figures import names, palette, template
from workbench.figures.breakdown import THIN, Doubt
from workbench.figures.empty import not_measured, nothing
from workbench.figures.ranking import ROW, row_axis, row_labels
from workbench.figures.scale import exact, time_scale
from workbench.units import NOT_MEASURED, count_text, share_text, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_MARKS = 600
ABOVE, BETWEEN, BELOW, BOTTOM = 72, 80, 200, 48
"""Pixels over the bars, between bars and points, of the points, and under them."""


class Total(NamedTuple):
    """All idle time of one cause."""

    cause: str
    ns: int
    pieces: int


def idle_gaps(
    start: NDArray[np.int64] | None,
    end: NDArray[np.int64] | None,
    cause: NDArray[np.integer[Any]] | None,
    *,
    causes: Sequence[str],
    device_label: str,
    window_ns: int,
    window_start: int = 0,
    by_cause: Mapping[str, int | None] | None = None,
    doubt: Doubt | None = None,
    reason: str = "the trace holds no device work, so there is no idle time to explain.",
) -> "go.Figure":
    """Draw idle time by cause, and under it the longest pieces where they happened.

    Args:
        start: Start of every idle piece, in ns.
        end: End of every piece, in ns.
        cause: Code of every piece's cause: its place in ``causes``.
        causes: Names of the causes (``metrics.md``, Cause of idle).
        device_label: "GPU 0".
        window_ns: Length of the window.
        window_start: Start of the window, the zero of the time axis.
        by_cause: Totals; a cause that is ``None`` there is said to be not measured.
        doubt: What the trace cannot be trusted for: the title then claims nothing about it.
        reason: Said when idle time was not measured.
    """
    if start is None or end is None or cause is None or window_ns <= 0:
        return not_measured("Idle time of the device", reason)
    length = np.asarray(end, dtype=np.int64) - np.asarray(start, dtype=np.int64)
    totals = totals_of(length, np.asarray(cause), causes)
    if not totals:
        busy = f"some work of it runs at every moment of the {time_text(window_ns)}"
        return nothing(f"{device_label} is never idle in the window", busy)
    missing = [palette.category(n).label for n, ns in (by_cause or {}).items() if ns is None]
    largest = np.argsort(-length, kind="stable")[:MOST_MARKS]
    largest = largest[length[largest] > 0]
    drawn = template.figure(
        names.plain(headline(totals, window_ns, device_label, doubt)),
        names.plain(_subtitle(length, largest, window_ns, missing)),
        height=ABOVE + ROW * len(totals) + BETWEEN + BELOW + BOTTOM,
        **_layout(totals, length[largest], window_ns),
    )
    drawn.add_bar(**_bars(totals, window_ns))
    for each in totals:
        inside = largest[np.asarray(cause)[largest] == list(causes).index(each.cause)]
        at = (np.asarray(start)[inside] - window_start).astype(np.float64)
        drawn.add_scatter(**_marks(each.cause, at, length[inside], window_ns))
    return drawn


def totals_of(
    length: NDArray[np.int64], cause: NDArray[np.integer[Any]], causes: Sequence[str]
) -> list[Total]:
    """Idle time by cause, longest first; causes without any are left out."""
    found = [
        Total(name, int(length[cause == code].sum()), int((cause == code).sum()))
        for code, name in enumerate(causes)
    ]
    return sorted((t for t in found if t.ns > 0), key=lambda t: (-t.ns, t.cause))


def headline(
    totals: Sequence[Total], window_ns: int, device_label: str, doubt: Doubt | None = None
) -> str:
    """How much idle time, and its first cause."""
    idle = sum(total.ns for total in totals)
    if doubt == "times":
        return f"Cannot tell how long {device_label} is idle: this profile fails its own checks"
    if doubt == "causes":
        said = f"{device_label} is idle {share_text(idle / window_ns)} of the window"
        return f"{said}; why, this trace cannot tell"
    first = totals[0]
    share = share_text(first.ns / idle)
    return (
        f"{device_label} is idle {share_text(idle / window_ns)} of the window; "
        f"{share} of that it waits {palette.category(first.cause).waits or first.cause}"
    )


def _subtitle(
    length: NDArray[np.int64], drawn: NDArray[np.intp], window_ns: int, missing: list[str]
) -> str:
    total = int(length.sum())
    text = f"{time_text(total)} of {time_text(window_ns)}"
    if len(drawn) < len(length):
        held = share_text(float(length[drawn].sum()) / total)
        text += (
            f" · below: the {count_text(len(drawn))} longest of {count_text(len(length))} pieces, "
            f"{held} of the idle time"
        )
    if missing:
        text += f" · {NOT_MEASURED}: {', '.join(missing)}"
    return text


def _layout(totals: Sequence[Total], length: NDArray[np.int64], window_ns: int) -> dict[str, Any]:
    inside = ROW * len(totals) + BETWEEN + BELOW
    over = time_scale(totals[0].ns)
    when = time_scale(window_ns)
    return {
        "xaxis": {
            "title": {"text": f"idle time ({over.unit})"},
            "range": [0, totals[0].ns / over.size * 1.001],
            "domain": [0, 1],
            "anchor": "y",
            "fixedrange": True,
            "showgrid": False,
        },
        "yaxis": {
            **row_axis(len(totals)),
            "domain": [(BELOW + BETWEEN) / inside, 1],
        },
        "xaxis2": {
            "title": {"text": f"time in the window ({when.unit})"},
            "range": [0, window_ns / when.size],
            "anchor": "y2",
            "showgrid": False,
        },
        "yaxis2": {
            "title": {"text": "length of a piece"},
            "type": "log",
            "domain": [0, BELOW / inside],
            "anchor": "x2",
            **_decades(length),
        },
        "annotations": row_labels(_words(totals)),
    }


def _decades(length: NDArray[np.int64]) -> dict[str, Any]:
    """Ticks of a logarithmic time axis in words: 1, 2 and 5 of each power of ten where few fit."""
    low, high = int(np.log10(max(int(length.min()), 1))), int(np.log10(max(int(length.max()), 1)))
    steps = (1, 2, 5) if high - low < 2 else (1,)
    ticks = [step * 10.0**power for power in range(low, high + 2) for step in steps]
    return {"tickvals": ticks, "ticktext": [time_text(tick) for tick in ticks]}


def _bars(totals: Sequence[Total], window_ns: int) -> dict[str, Any]:
    over = time_scale(totals[0].ns)
    looks = [palette.category(total.cause) for total in totals]
    said = [
        f"<b>{names.plain(look.label)}</b><br>{exact(total.ns)} in {count_text(total.pieces)} "
        f"pieces<br>{share_text(total.ns / window_ns)} of the window"
        for total, look in zip(totals, looks, strict=True)
    ]
    return {
        "orientation": "h",
        "x": [total.ns / over.size for total in totals],
        "y": list(range(len(totals))),
        "width": THIN,
        "marker": {
            "color": [look.colour for look in looks],
            "line": {"width": 0},
            "pattern": {"shape": ["/" if look.hatched else "" for look in looks], "size": 6},
        },
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _words(totals: Sequence[Total]) -> list[tuple[str, str]]:
    idle = sum(total.ns for total in totals)
    return [
        (
            names.plain(palette.category(total.cause).label),
            f"<b>{share_text(total.ns / idle)}</b>  {time_text(total.ns)}",
        )
        for total in totals
    ]


def _marks(
    cause: str, at: NDArray[np.float64], length: NDArray[np.int64], window_ns: int
) -> dict[str, Any]:
    when = time_scale(window_ns)
    look = palette.category(cause)
    said = [
        f"<b>{names.plain(look.label)}</b><br>{exact(ns)}<br>at {exact(t)}"
        for ns, t in zip(length.tolist(), at.tolist(), strict=True)
    ]
    return {
        "x": (at / when.size).round(6).tolist(),
        "y": length.tolist(),
        "xaxis": "x2",
        "yaxis": "y2",
        "mode": "markers",
        "marker": {
            "color": look.colour,
            "size": 7,
            "symbol": "x" if look.hatched else "circle",
            "line": {"width": 0},
        },
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }
