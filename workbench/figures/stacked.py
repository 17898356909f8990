"""A bar a step, divided by part: what the charts of single steps share."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.figures import template

if TYPE_CHECKING:
    import plotly.graph_objects as go

Times = NDArray[np.int64]

MOST_BARS = 200
"""Of more steps, each bar is the mean of as many neighbours as it takes."""


class Bar(NamedTuple):
    """One step, or the mean of some neighbours."""

    which: str
    """"step 3", or "steps 3 to 5, mean"."""
    at: float
    ns: float
    of_ns: float
    """The whole that the part is of."""


def steps_a_bar(steps: int) -> int:
    """How many steps one bar stands for."""
    return -(-steps // MOST_BARS)


def stacked(title: str, subtitle: str, *, axis: str, steps: int) -> "go.Figure":
    """An empty figure for stacked bars; ``title`` and ``subtitle`` are already safe to draw."""
    return template.figure(
        title,
        subtitle,
        height=320,
        barmode="stack",
        bargap=0.15,
        xaxis={
            "title": {"text": "step"},
            "separatethousands": False,
            "showgrid": False,
            "dtick": 1 if steps <= 12 else None,
        },
        yaxis={"title": {"text": axis}, "rangemode": "tozero"},
        showlegend=True,
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1, "traceorder": "reversed"},
        margin={"l": 6, "r": 16, "t": 72, "b": 48},
    )


def bars(values: Times, whole: Times, numbers: Sequence[int]) -> Iterator[Bar]:
    """The bars of one part."""
    size = steps_a_bar(len(values))
    for first in range(0, len(values), size):
        last = min(first + size, len(values)) - 1
        which = f"step {numbers[first]}"
        if size > 1:
            which = f"steps {numbers[first]} to {numbers[last]}, mean"
        yield Bar(
            which,
            (numbers[first] + numbers[last]) / 2,
            float(values[first : last + 1].mean()),
            float(whole[first : last + 1].mean()),
        )
