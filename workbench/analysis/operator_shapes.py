"""What the framework's operators cost for each of the shapes that they were called with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.operators import OperatorCalls, operator_calls
from workbench.trace.table import Trace

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.launches import Launches
    from workbench.analysis.ranges import Range

SHAPE_COLUMNS = ("name", "shapes", "calls", "host_self_ns", "host_total_ns", "device_ns")


def shape_table(trace: Trace, launches: Launches, range: Range | None) -> pd.DataFrame | None:  # noqa: A002
    """One row an operator and its input shapes, longest self time first; columns as above.

    ``shapes`` is compact JSON such as ``[[64,3],[3,8]]``, missing where an operator's were not
    recorded. A direct re-dispatch counts with the shapes of the call that it re-dispatches, so each
    name sums to its row of ``operator_table``. ``None`` where no shapes were recorded at all.

    Args:
        trace: The event table.
        launches: The join of device work to its launching calls.
        range: Operators that begin in it, on the host's clock; ``None`` for the whole trace.
    """
    import pandas as pd

    found = operator_calls(trace, launches)
    shapes = _shapes(trace, found)
    if not (shapes >= 0).any():
        return None
    chosen = np.ones(len(shapes), bool)
    if range is not None:
        start = found.nesting.start
        chosen = (start >= range.start) & (start < range.end)
    size = len(trace.shapes) + 1
    key = found.name[chosen].astype(np.int64) * size + shapes[chosen] + 1
    codes, index = np.unique(key, return_inverse=True)

    def summed(values: NDArray[np.int64]) -> NDArray[np.int64]:
        sums = np.zeros(len(codes), np.int64)
        np.add.at(sums, index, values[chosen])
        return sums

    own = summed(found.host_self)
    order = np.lexsort((codes, -own))
    name, shape = np.divmod(codes[order], size)
    missing = np.full(len(codes), np.nan)
    device = missing if found.device_total is None else summed(found.device_total)
    return pd.DataFrame(
        {
            "name": pd.Series([trace.names[code] for code in name], dtype=object),
            "shapes": pd.Series(
                [trace.shapes[code - 1] if code else None for code in shape], dtype=object
            ),
            "calls": summed(found.calls)[order],
            "host_self_ns": own[order],
            "host_total_ns": summed(found.host_total)[order],
            "device_ns": device[order],
        },
        columns=list(SHAPE_COLUMNS),
    )


def decoded(text: str) -> list[Any]:
    """Shapes, types or strides of an operator's inputs; empty for what is no list."""
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return found if isinstance(found, list) else []


def _shapes(trace: Trace, found: OperatorCalls) -> NDArray[np.int32]:
    """The shapes of each operator; of a direct re-dispatch those of the first call of its chain."""
    shapes = np.array(trace.events.shapes[found.nesting.row], np.int32)
    parent = found.nesting.parent
    at = np.flatnonzero(found.calls == 0)
    while len(at):
        changed = shapes[at] != shapes[parent[at]]
        shapes[at] = shapes[parent[at]]
        at = at[changed]
    return shapes
