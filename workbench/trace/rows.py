"""Some rows of a trace as a trace of its own: every table follows its events."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace.table import Events, Trace

Mask = NDArray[np.bool_]


def taken(trace: Trace, rows: NDArray[np.intp], **columns: NDArray[Any]) -> Trace:
    """The trace with only these rows, in this order, and what other tables tell about them.

    ``columns`` replace those of the rows. Tables of moments, and times, stay as they are.
    """
    position = np.full(len(trace.events), -1)
    position[rows] = np.arange(len(rows))
    collectives = (replace(c, row=int(position[c.row])) for c in trace.collectives)
    return replace(
        trace,
        events=Events(**columns_of(trace.events, rows) | columns),
        launch_configurations=_about_rows(trace.launch_configurations, position),
        copies=_about_rows(trace.copies, position),
        waits=_about_rows(trace.waits, position),
        collectives=tuple(sorted((c for c in collectives if c.row >= 0), key=lambda c: c.row)),
    )


def columns_of(table: Any, rows: NDArray[np.intp] | Mask) -> dict[str, Any]:
    """The columns of a table at some rows; what is no column stays."""
    columns = {column.name: getattr(table, column.name) for column in fields(table)}
    return {n: v[rows] if isinstance(v, np.ndarray) else v for n, v in columns.items()}


def moments(table: Any, chosen: Mask, first: int) -> Any:
    """Some moments of a table, counted from ``first``."""
    columns = columns_of(table, chosen)
    return type(table)(**columns | {"ts": columns["ts"] - first})


def _about_rows(table: Any, position: NDArray[np.int64]) -> Any:
    """A table that tells more about some events, of those that are kept."""
    kept = position[table.row]
    order = np.flatnonzero(kept >= 0)
    order = order[np.argsort(kept[order], kind="stable")]
    return type(table)(**columns_of(table, order) | {"row": kept[order]})
