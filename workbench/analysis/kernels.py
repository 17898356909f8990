"""What ran on the devices, by name: how often, how long, of which family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import work_rows
from workbench.analysis.families import family, tensor_core
from workbench.analysis.launch_means import launch_means
from workbench.analysis.ranges import Range
from workbench.trace.table import Trace

if TYPE_CHECKING:
    import pandas as pd

KERNEL_COLUMNS = (
    "device",
    "name",
    "family",
    "calls",
    "total_ns",
    "median_ns",
    "share",
    "tensor_core",
    "occupancy",
    "blocks_per_sm",
    "registers",
    "shared_memory_bytes",
)


def kernel_table(
    trace: Trace,
    range: Range | Mapping[int, Range | None] | None,  # noqa: A002
) -> pd.DataFrame:
    """Kernels, copies and sets that start in the range, one row for each device and name.

    Args:
        trace: The event table.
        range: A stretch on the device's clock, or one for each device, whose clocks and steps are
            its own; ``None`` for the whole recording.

    Returns:
        Columns ``device, name, family, calls, total_ns, median_ns, share, tensor_core``, longest
        total first. ``share`` is of the summed time of all work on that device in the range: the
        shares of a device sum to 1 even where streams overlap. ``tensor_core`` is ``True``,
        ``False`` or, where the name does not tell, ``None``. Then, as means weighted by the time of
        the calls that record them, NaN where none does: ``occupancy`` (a fraction, estimated by the
        profiler from the launch), ``blocks_per_sm``, ``registers`` per thread and
        ``shared_memory_bytes`` per block.
    """
    import pandas as pd

    events = trace.events
    rows = work_rows(trace, None)
    if range is not None:
        rows = rows[_inside(trace, rows, range)]
    device, name, calls, total, median = _by_name(
        events.device[rows], events.name[rows], events.dur[rows]
    )
    share = total / np.maximum(_sum_of_group(device, total), 1)
    launched = launch_means(trace, rows, device, name)
    texts = [trace.names[code] for code in name]
    order = sorted(np.arange(len(name)), key=lambda i: (-total[i], device[i], texts[i]))
    names = [texts[i] for i in order]
    return pd.DataFrame(
        {
            "device": device[order],
            "name": pd.Series(names, dtype=object),
            "family": pd.Series([family(text) for text in names], dtype=object),
            "calls": calls[order],
            "total_ns": total[order],
            "median_ns": median[order],
            "share": share[order],
            "tensor_core": pd.Series([tensor_core(text) for text in names], dtype=object),
            **{column: values[order] for column, values in launched.items()},
        },
        columns=list(KERNEL_COLUMNS),
    )


def _inside(
    trace: Trace,
    rows: NDArray[np.intp],
    range: Range | Mapping[int, Range | None],  # noqa: A002
) -> NDArray[np.bool_]:
    """Which rows start in the range, or in that of their device."""
    start = trace.events.ts[rows]
    if not isinstance(range, Mapping):
        return np.asarray((start >= range.start) & (start < range.end))
    inside = np.zeros(len(rows), bool)
    for device, span in range.items():
        if span is not None:
            own = trace.events.device[rows] == device
            inside |= own & (start >= span.start) & (start < span.end)
    return inside


def _by_name(
    device: NDArray[np.int16], name: NDArray[np.int32], dur: NDArray[np.int64]
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.float64],
]:
    """Device, name code, count, sum and median of the durations of each (device, name)."""
    order = np.lexsort((dur, name, device))
    device, name, dur = device[order], name[order], dur[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(device) != 0) | (np.diff(name) != 0)
    first = np.flatnonzero(begins)
    count = np.diff(np.append(first, len(order)))
    total = np.add.reduceat(dur, first) if len(first) else np.empty(0, np.int64)
    median = (dur[first + (count - 1) // 2] + dur[first + count // 2]) / 2
    return device[first].astype(np.int64), name[first].astype(np.int64), count, total, median


def _sum_of_group(group: NDArray[np.int64], value: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each entry, the sum of the values of its group."""
    _, index = np.unique(group, return_inverse=True)
    sums = np.zeros(index.max() + 1 if len(index) else 0, np.int64)
    np.add.at(sums, index, value)
    return sums[index]
