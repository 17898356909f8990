"""How kernels were launched, as means over the calls of each, weighted by their time."""

import numpy as np
from numpy.typing import NDArray

from workbench.trace.table import Trace

Values = NDArray[np.float64]

PERCENT = 100


def launch_means(
    trace: Trace,
    rows: NDArray[np.intp],
    device: NDArray[np.int64],
    name: NDArray[np.int64],
) -> dict[str, Values]:
    """Occupancy, blocks per SM, registers and shared memory of each (device, name).

    Args:
        trace: The event table.
        rows: Rows of the work to look at.
        device: Device of each group.
        name: Name code of each group; a device's names stand in rising order.

    Returns:
        Arrays as long as the groups; NaN where no call of the group records the value. Calls that
        do not record it, and calls of no length, have no weight.
    """
    told = trace.launch_configurations
    place = np.searchsorted(told.row, rows)
    found = np.zeros(len(rows), bool)
    inside = place < len(told.row)
    found[inside] = told.row[place[inside]] == rows[inside]
    place, rows = place[found], rows[found]
    events = trace.events
    size = len(trace.names) + 1
    keys = device * size + name
    group = np.searchsorted(keys, events.device[rows].astype(np.int64) * size + events.name[rows])
    weight = events.dur[rows].astype(np.float64)
    columns = {
        "occupancy": told.occupancy[place] / PERCENT,
        "blocks_per_sm": told.blocks_per_sm[place],
        "registers": told.registers[place],
        "shared_memory_bytes": told.shared_memory[place],
    }
    return {
        column: _weighted(np.asarray(values, np.float64), weight, group, len(keys))
        for column, values in columns.items()
    }


def _weighted(values: Values, weight: Values, group: NDArray[np.intp], count: int) -> Values:
    known = np.isfinite(values) & (values >= 0)
    sums = np.bincount(group[known], weights=(values * weight)[known], minlength=count)
    weights = np.bincount(group[known], weights=weight[known], minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(weights > 0, sums / weights, np.nan), np.float64)
