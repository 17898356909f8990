"""What decides how long a step takes: its critical path as a lane, and what each change saves."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.figures import names, palette, template
from workbench.figures.breakdown import THICK
from workbench.figures.empty import not_measured
from workbench.figures.ranking import ROW, row_axis, row_labels
from workbench.figures.scale import exact, time_scale
from workbench.units import share_text, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_BINS = 600
"""The lane is drawn in so many stretches at most, each in the colour that takes most of it."""
MOST_BARS = 12
LEAST_SHARE = 0.001
"""Savings below this share of a step are not drawn; the table holds them."""
ABOVE, LANE, BETWEEN, BOTTOM = 88, 44, 76, 48
"""Pixels over the lane, of it, under it, and under the bars."""

_LOOKS = {"host": "host_operators", "late_ranks": "exposed_communication_wait"}
"""Questions that are no category of their own."""


class Saving(NamedTuple):
    """What a step saves at most under one change."""

    name: str
    """A cause, a class of work, ``host``, ``late_ranks`` or ``family:NAME``."""
    label: str
    ns: float
    of_ns: float | None = None
    """The step that it is capped by, where that is the one without the profiler."""

    def share(self, length: int) -> float:
        """Of the step that it is a part of: the one drawn, or the shorter one that caps it."""
        return min(self.ns / (self.of_ns or length), 1.0)


class Stretch(NamedTuple):
    """A part of the lane that is drawn in one colour."""

    start: int
    end: int
    kind: str
    share: float
    """Of the stretch, how much is of that kind."""


def critical_path(
    start: NDArray[np.int64] | None,
    end: NDArray[np.int64] | None,
    kind: NDArray[np.integer[Any]] | None,
    *,
    kinds: Sequence[str],
    savings: Sequence[Saving] = (),
    step: int = 0,
    reason: str = "the trace marks no complete step whose launches are known.",
) -> "go.Figure":
    """Draw the critical path of a step, and under it the most that each change saves.

    Args:
        start: Start of every piece of the path, in ns; pieces follow each other without a gap.
        end: End of every piece.
        kind: Code of what every piece is: its place in ``kinds``.
        kinds: Categories of the palette.
        savings: What a step saves at most.
        step: Number of the step.
        reason: Said when there is no path.
    """
    if start is None or end is None or kind is None or not len(start):
        return not_measured("The critical path of a step", reason)
    length = int(end[-1] - start[0])
    by_kind = summed(start, end, kind, kinds)
    shown = sorted(savings, key=lambda each: -each.ns)[:MOST_BARS]
    shown = [each for each in shown if each.ns >= LEAST_SHARE * length]
    drawn = template.figure(
        names.plain(headline(by_kind, length, shown)),
        names.plain(_subtitle(by_kind, length, step)),
        height=ABOVE + LANE + BETWEEN + ROW * len(shown) + BOTTOM,
        **_layout(shown, length),
    )
    drawn.add_bar(**_lane(stretches(start, end, kind, kinds), int(start[0]), length))
    if shown:
        drawn.add_bar(**_bars(shown, length))
    return drawn


def summed(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    kind: NDArray[np.integer[Any]],
    kinds: Sequence[str],
) -> dict[str, int]:
    """Time of the path by kind, longest first."""
    time = np.bincount(kind, weights=(end - start).astype(float), minlength=len(kinds))
    found = {name: round(ns) for name, ns in zip(kinds, time, strict=False) if ns > 0}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def headline(by_kind: Mapping[str, int], length: int, savings: Sequence[Saving]) -> str:
    """What decides most of the step, and the largest saving."""
    first, ns = next(iter(by_kind.items()))
    said = f"{share_text(ns / length)} of a step's critical path is {palette.category(first).label}"
    if not savings:
        return said
    best = savings[0]
    most = share_text(best.share(length))
    return f"{said}; the largest saving is at most {most}: {best.label}"


def stretches(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    kind: NDArray[np.integer[Any]],
    kinds: Sequence[str],
) -> list[Stretch]:
    """The path in at most ``MOST_BINS`` stretches, each with the kind that takes most of it."""
    if len(start) <= MOST_BINS:
        columns = zip(start.tolist(), end.tolist(), kind.tolist(), strict=True)
        return [Stretch(a, b, kinds[code], 1.0) for a, b, code in columns]
    borders = np.unique(np.linspace(start[0], end[-1], MOST_BINS + 1).astype(np.int64))
    cuts = np.unique(np.concatenate((start, borders, end[-1:])))
    piece = np.searchsorted(start, cuts[:-1], "right") - 1
    place = np.searchsorted(borders, cuts[:-1], "right") - 1
    time = np.zeros((len(borders) - 1, len(kinds)))
    np.add.at(time, (place, kind[piece]), np.diff(cuts))
    most = time.argmax(axis=1)
    begins = np.flatnonzero(np.diff(most, prepend=-1))
    found = []
    for first, last in zip(begins, np.append(begins[1:], len(most)), strict=True):
        code = int(most[first])
        part = time[first:last]
        share = float(part[:, code].sum() / part.sum())
        found.append(Stretch(int(borders[first]), int(borders[last]), kinds[code], share))
    return found


def _subtitle(by_kind: Mapping[str, int], length: int, step: int) -> str:
    parts = [
        f"{palette.category(name).label} {share_text(ns / length)}"
        for name, ns in list(by_kind.items())[:5]
    ]
    return f"step {step}, {time_text(length)} under the profiler: {', '.join(parts)}"


def _layout(savings: Sequence[Saving], length: int) -> dict[str, Any]:
    inside = LANE + BETWEEN + ROW * len(savings)
    scale = time_scale(length)
    layout: dict[str, Any] = {
        "xaxis": {
            "title": {"text": f"time in the step ({scale.unit})"},
            "range": [0, length / scale.size],
            "anchor": "y",
            "showgrid": False,
        },
        "yaxis": {**template.NAMELESS, "domain": [1 - LANE / inside, 1], "range": [-0.5, 0.5]},
        "barmode": "overlay",
    }
    if savings:
        most = time_scale(savings[0].ns)
        layout["xaxis2"] = {
            "title": {"text": f"a step saves at most ({most.unit})"},
            "range": [0, savings[0].ns / most.size * 1.001],
            "anchor": "y2",
            "fixedrange": True,
            "showgrid": False,
        }
        layout["yaxis2"] = {
            **row_axis(len(savings)),
            "domain": [0, ROW * len(savings) / inside],
            "anchor": "x2",
        }
        said = [
            f"<b>{time_text(each.ns)}</b>  {share_text(each.share(length))}" for each in savings
        ]
        labels = [names.label(each.label) for each in savings]
        layout["annotations"] = row_labels(list(zip(labels, said, strict=True)), yref="y2")
    return layout


def _lane(parts: Sequence[Stretch], begin: int, length: int) -> dict[str, Any]:
    scale = time_scale(length)
    looks = [palette.category(part.kind) for part in parts]
    said = [
        f"<b>{names.plain(look.label)}</b><br>{exact(part.end - part.start)} from "
        f"{exact(part.start - begin)}"
        + ("" if part.share > 0.9995 else f"<br>mostly: {share_text(part.share)} of it")
        for part, look in zip(parts, looks, strict=True)
    ]
    return {
        "orientation": "h",
        "base": [round((part.start - begin) / scale.size, 6) for part in parts],
        "x": [round((part.end - part.start) / scale.size, 6) for part in parts],
        "y": [0] * len(parts),
        "width": [0.35 if look.idle else 0.9 for look in looks],
        "marker": {
            "color": [look.colour for look in looks],
            "line": {"width": 0},
            "pattern": {"shape": ["/" if look.hatched else "" for look in looks], "size": 6},
        },
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _bars(savings: Sequence[Saving], length: int) -> dict[str, Any]:
    scale = time_scale(savings[0].ns)
    said = [
        f"<b>{names.plain(each.label)}</b><br>a step saves at most {exact(each.ns)}"
        f"<br>{share_text(each.share(length))} of it"
        for each in savings
    ]
    return {
        "orientation": "h",
        "x": [each.ns / scale.size for each in savings],
        "y": list(range(len(savings))),
        "width": THICK,
        "xaxis": "x2",
        "yaxis": "y2",
        "marker": {"color": [_colour(each.name) for each in savings], "line": {"width": 0}},
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _colour(name: str) -> str:
    if name.startswith("family:"):
        return palette.category("compute").colour
    return palette.category(_LOOKS.get(name, name)).colour
