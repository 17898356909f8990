"""The critical path of a step and what each change could save, as tables and as a chart."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.figures.critical_path import Saving, critical_path
from workbench.figures.palette import category
from workbench.pages.charts import drawn_chart
from workbench.pages.frames import LIMIT, from_frame
from workbench.pages.static import StaticFigure
from workbench.pages.table import Column, Kind, Table

if TYPE_CHECKING:
    import pandas as pd

_WHAT_IF: tuple[tuple[str, str, Kind], ...] = (
    ("what_if", "what if", "name"),
    ("step_ns_at_least", "a step takes at least", "time"),
    ("saving_ns_at_most", "it saves at most", "time"),
    ("capped", "limited by", "text"),
)
_DRAWN = "A lane of what decides the step at each moment; below, a bar for each possible saving."


_CAP = "the step without the profiler"
_CAPTION = "What a step could save at most: a mean of steps replayed as they ran under the profiler"


def what_if_table(
    frame: "pd.DataFrame", *, measured: tuple[float, float] | None = None, limit: int = LIMIT
) -> Table:
    """What a step would take at least, and save at most, under the profiler; the largest first.

    Args:
        frame: The answers of the replay.
        measured: What a step takes, and saves, with batches at hand instead of its loader. It was
            measured without the profiler, so it stands first and is named.
        limit: Rows that are shown.
    """
    import pandas as pd

    ranked = frame.sort_values("saving_ns_at_most", ascending=False, kind="stable")
    if measured is not None:
        ranked = ranked.replace({"what_if": {"loader free": "loader free, replayed"}})
        first = pd.DataFrame(
            {
                "scenario": ["input"],
                "what_if": ["loader free, measured without the profiler"],
                "step_ns_at_least": [measured[0]],
                "saving_ns_at_most": [measured[1]],
                "capped": [False],
            }
        )
        if "rank" in ranked:
            first["rank"] = ranked["rank"].min()  # a Run's record is of its first rank
        ranked = pd.concat([first.reindex(columns=ranked.columns), ranked], ignore_index=True)
    # Said only of those that are limited: a "no" beside each of the others tells nothing.
    limits = [_CAP if capped else "" for capped in ranked["capped"]]
    ranked = ranked.drop(columns="capped")
    shown = ranked.assign(capped=limits) if any(limits) else ranked
    return from_frame(_CAPTION, shown, _WHAT_IF, limit)


def path_table(by_kind: Mapping[str, int], *, step: int, whose: str = "") -> Table:
    """The critical path of a step by what it is made of; sums to the step exactly."""
    length = sum(by_kind.values())
    rows = tuple(
        (category(name).label, ns, ns / length if length else None) for name, ns in by_kind.items()
    )
    columns = (
        Column(name="on the critical path"),
        Column(name="time", kind="time"),
        Column(name="share of the step", kind="share"),
    )
    return Table(caption=f"{whose}critical path of step {step}", columns=columns, rows=rows)


def critical_path_chart(
    start: NDArray[np.int64] | None,
    end: NDArray[np.int64] | None,
    kind: NDArray[np.integer[Any]] | None,
    *,
    kinds: Sequence[str],
    by_kind: Mapping[str, int],
    savings: Sequence[Saving] = (),
    step: int = 0,
    **rest: Any,
) -> StaticFigure:
    """What decides a step at each moment, and what each change saves at most."""
    figure = critical_path(start, end, kind, kinds=kinds, savings=savings, step=step, **rest)
    table = path_table(by_kind, step=step) if by_kind else None
    return drawn_chart(figure, table, _DRAWN)
