"""Ranks and steps as a map: who waits for whom, and when."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.scale import exact, time_scale
from workbench.units import count_text, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_STEPS = 200
MOST_WORDS = 8
"""Up to so many steps each field carries its time in words."""
Of = Literal["wait", "step"]


def rank_steps(
    values_ns: NDArray[np.float64] | None,
    *,
    ranks: Sequence[str] = (),
    steps: Sequence[int] = (),
    of: Of = "wait",
    reason: str = "a single trace has no other rank to compare with; open a folder of all ranks.",
) -> "go.Figure":
    """Draw a field for each rank and step: the darker, the longer.

    Args:
        values_ns: Nanoseconds, a row a rank and a column a step; NaN = not measured.
        ranks: Names of the rows.
        steps: Numbers of the columns.
        of: Whether these are waits for other ranks, or whole step times.
        reason: Said when there is nothing to draw.
    """
    if values_ns is None or values_ns.shape[0] < 2 or not np.isfinite(values_ns).any():
        return not_measured("Ranks step by step", reason)
    shown, numbers = values_ns[:, :MOST_STEPS], list(steps)[:MOST_STEPS]
    scale = time_scale(float(np.nanmax(shown)))
    colour = "communication" if of == "wait" else "compute"
    said = [
        [
            f"<b>{names.plain(rank)}, step {step}</b><br>"
            + ("not measured" if not np.isfinite(ns) else exact(float(ns)))
            for step, ns in zip(numbers, row, strict=True)
        ]
        for rank, row in zip(ranks, shown, strict=True)
    ]
    words = [[time_text(float(ns)) if np.isfinite(ns) else "" for ns in row] for row in shown]
    drawn = template.figure(
        names.plain(headline(values_ns, ranks, steps, of)),
        names.plain(_subtitle(shown.shape, len(steps), of)),
        height=150 + max(24, min(36, 720 // len(ranks))) * len(ranks),
        xaxis={"title": {"text": "step"}, "type": "category", "showgrid": False},
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
    )
    drawn.add_heatmap(
        x=[str(number) for number in numbers],
        y=[names.plain(rank) for rank in ranks],
        z=[
            [None if not np.isfinite(v) else float(f"{v:.6g}") for v in row]
            for row in shown / scale.size
        ],
        colorscale=[[0, _faded(colour, 0.04)], [1, _faded(colour, 1.0)]],
        zmin=0,
        colorbar={
            "title": {
                "text": f"{'wait' if of == 'wait' else 'step time'} ({scale.unit})",
                "font": {"size": template.SIZE},
            },
            "thickness": 10,
            "outlinewidth": 0,
        },
        xgap=2,
        ygap=2,
        **({"text": words, "texttemplate": "%{text}"} if len(numbers) <= MOST_WORDS else {}),
        customdata=said,
        hovertemplate="%{customdata}<extra></extra>",
    )
    return drawn


def headline(
    values_ns: NDArray[np.float64], ranks: Sequence[str], steps: Sequence[int], of: Of
) -> str:
    """Who waits least over all steps, or which rank and step is slowest."""
    sums = np.nansum(values_ns, axis=1)
    known = np.isfinite(values_ns).any(axis=1)
    if of == "wait":
        least = int(np.where(known, sums, np.inf).argmin())
        most = int(np.where(known, sums, -np.inf).argmax())
        return (
            f"{ranks[least]} waits least for the others, {time_text(float(sums[least]))} in all; "
            f"{ranks[most]} most, {time_text(float(sums[most]))}"
        )
    row, column = np.unravel_index(int(np.nanargmax(values_ns)), values_ns.shape)
    longest = time_text(float(values_ns[row, column]))
    return f"The longest step is step {steps[int(column)]} of {ranks[int(row)]}: {longest}"


def _subtitle(shape: tuple[int, ...], steps: int, of: Of) -> str:
    what = (
        "exposed waiting for late ranks" if of == "wait" else "time from completion to completion"
    )
    text = f"{what}, under the profiler · {count_text(shape[0])} ranks"
    if shape[1] < steps:
        text += f" · the first {count_text(shape[1])} of {count_text(steps)} steps"
    return text


def _faded(name: str, opacity: float) -> str:
    colour = palette.category(name).colour
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
