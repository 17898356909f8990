"""Collectives by kind and process group: bytes, time, what nothing hides, wait and transfer.

Totals agree with ``device_time`` exactly: over all rows ``total_ns`` is its communication and
``exposed_ns`` its exposed communication, since overlapping collectives share no instant here.

``wait_ns`` and ``transfer_ns`` divide ``total_ns``. One rank alone cannot tell them apart: wait is
missing, all of the time counts as transfer, and the bus bandwidth is "at least".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.intervals import Spans
from workbench.statistics.link import bus_factor

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from workbench.analysis.collectives import Collectives, Pieces
    from workbench.analysis.ranges import Range

COLUMNS = (
    *("collective", "group", "calls", "bytes", "total_ns", "exposed_ns"),
    *("wait_ns", "transfer_ns", "bus_gb_s", "dtype", "hidden_ns"),
)
UNKNOWN = -1
"""The transfer of a call that cannot be divided."""


@dataclass(frozen=True, kw_only=True)
class ExposedCommunication:
    """Exposed communication of a device in nanoseconds, in its two parts."""

    wait: int | None
    """For late ranks; ``None`` where no other rank was seen."""
    transfer: int


def exposed_communication(
    found: Collectives, device: int, window: Range, transfer: NDArray[np.int64] | None
) -> ExposedCommunication:
    """The exposed communication of one device in a window; the two parts sum to it exactly."""
    here = found.device[found.exposed.call] == device
    whole = int(_lengths(found.exposed, window)[here].sum())
    split = split_points(found, transfer)
    if split is None:
        return ExposedCommunication(wait=None, transfer=whole)
    wait = int(_lengths(found.exposed, window, until=split)[here].sum())
    return ExposedCommunication(wait=wait, transfer=whole - wait)


def waiting_spans(
    found: Collectives, device: int, transfer: NDArray[np.int64] | None
) -> Spans | None:
    """When a device waits, exposed, for late ranks; ``None`` where no other rank was seen."""
    split = split_points(found, transfer)
    if split is None:
        return None
    pieces = found.exposed
    here = found.device[pieces.call] == device
    start, end = pieces.start[here], np.minimum(pieces.end, split[pieces.call])[here]
    return Spans(start[end > start], end[end > start])


def exposed_calls(found: Collectives, device: int, window: Range) -> dict[int, int]:
    """Per call of a device that runs in a window, its exposed time."""
    ran = (found.device == device) & (found.start < window.end) & (found.end > window.start)
    times = dict.fromkeys(np.flatnonzero(ran).tolist(), 0)
    mine = found.device[found.exposed.call] == device
    lengths = _lengths(found.exposed, window)[mine]
    for call, ns in zip(found.exposed.call[mine].tolist(), lengths.tolist(), strict=True):
        if call in times:
            times[call] += ns
    return times


def communication_table(
    found: Collectives,
    windows: Mapping[int, Range | None],
    transfer: NDArray[np.int64] | None = None,
) -> pd.DataFrame:
    """Collectives in the windows, longest first; columns are ``COLUMNS``.

    Args:
        found: The collectives of one trace.
        windows: The window of every device; of the host under ``HOST``.
        transfer: Per call its transfer in ns as several ranks tell it, ``UNKNOWN`` where they
            cannot; ``None`` for one rank alone.
    """
    import pandas as pd

    spent = time_of_calls(found, windows, transfer)
    seen = np.flatnonzero(spent.inside)
    groups: dict[tuple[str, str], list[int]] = {}
    for call in seen.tolist():
        groups.setdefault((found.calls[call].kind, found.calls[call].group), []).append(call)
    rows = [_row(found, np.array(calls), spent, transfer) for calls in groups.values()]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    table["group"] = table["group"].astype(object).where(table["group"] != "", None)
    for name in ("bytes", "wait_ns"):
        table[name] = table[name].astype("Int64")
    table["bus_gb_s"] = table["bus_gb_s"].astype("float64")
    table["dtype"] = table["dtype"].astype(object).where(table["dtype"].notna(), None)
    order = ["total_ns", "collective"]
    return table.sort_values(order, ascending=[False, True], kind="stable", ignore_index=True)


def calls_table(
    found: Collectives,
    windows: Mapping[int, Range | None],
    transfer: NDArray[np.int64] | None = None,
) -> pd.DataFrame:
    """One row a call that runs in the windows: collective, group, bytes, transfer_ns, bus_gb_s."""
    import pandas as pd

    rows = []
    for call in np.flatnonzero(time_of_calls(found, windows, transfer).inside):
        each, one = found.calls[call], np.array([call])
        told = transfer is not None and transfer[call] >= 0
        took = int(found.end[call] - found.start[call])
        rate = _bandwidth(found, one, transfer if told else None)
        rows.append(
            (
                each.kind,
                each.group or None,
                each.bytes,
                int(transfer[call]) if transfer is not None and told else took,
                rate,
            )
        )
    names = ["collective", "group", "bytes", "transfer_ns", "bus_gb_s"]
    table = pd.DataFrame(rows, columns=names)
    return table.astype({"bytes": "Int64", "bus_gb_s": "float64"})


def split_points(
    found: Collectives, transfer: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """Per call the instant up to which it waits; its start where nothing divides it."""
    if transfer is None or not (transfer >= 0).any():
        return None
    inside = np.maximum(found.end - transfer, found.start)
    return np.where(transfer >= 0, inside, found.start)


@dataclass(frozen=True, kw_only=True, eq=False)
class Spent:
    """Per call, nanoseconds inside the windows."""

    inside: NDArray[np.bool_]
    """Whether it runs in the windows, also where an earlier one has all of its instants."""
    total: NDArray[np.int64]
    exposed: NDArray[np.int64]
    wait: NDArray[np.int64] | None


def time_of_calls(
    found: Collectives,
    windows: Mapping[int, Range | None],
    transfer: NDArray[np.int64] | None,
) -> Spent:
    """Per call its time inside the windows; ``wait`` is ``None`` where no other rank was seen."""
    total = np.zeros(len(found), np.int64)
    exposed = np.zeros(len(found), np.int64)
    waited = np.zeros(len(found), np.int64)
    inside = np.zeros(len(found), np.bool_)
    split = split_points(found, transfer)
    for device, window in windows.items():
        if window is None:
            continue
        inside |= (found.device == device) & (found.start < window.end) & (found.end > window.start)
        mine = found.device[found.owned.call] == device
        np.add.at(total, found.owned.call[mine], _lengths(found.owned, window)[mine])
        if split is not None:
            until = _lengths(found.owned, window, until=split)
            np.add.at(waited, found.owned.call[mine], until[mine])
        mine = found.device[found.exposed.call] == device
        np.add.at(exposed, found.exposed.call[mine], _lengths(found.exposed, window)[mine])
    return Spent(
        inside=inside, total=total, exposed=exposed, wait=None if split is None else waited
    )


def _lengths(
    pieces: Pieces, window: Range, until: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Length of each piece inside the window, and before its call's instant where one is given."""
    end = np.minimum(pieces.end, window.end)
    if until is not None:
        end = np.minimum(end, until[pieces.call])
    return np.asarray(np.maximum(end - np.maximum(pieces.start, window.start), 0), np.int64)


def _row(
    found: Collectives,
    calls: NDArray[np.int64],
    spent: Spent,
    transfer: NDArray[np.int64] | None,
) -> tuple[object, ...]:
    first = found.calls[calls[0]]
    sizes = [found.calls[call].bytes for call in calls]
    known = [size for size in sizes if size is not None]
    time = int(spent.total[calls].sum())
    divided = transfer is not None and bool((transfer[calls] >= 0).all())
    wait = int(spent.wait[calls].sum()) if divided and spent.wait is not None else None
    return (
        first.kind,
        first.group,
        len(calls),
        sum(known) if len(known) == len(sizes) else None,
        time,
        int(spent.exposed[calls].sum()),
        wait,
        time - (wait or 0),
        _bandwidth(found, calls, transfer if divided else None),
        ", ".join(sorted({found.calls[call].dtype for call in calls} - {""})) or None,
        time - int(spent.exposed[calls].sum()),
    )


def _bandwidth(
    found: Collectives, calls: NDArray[np.int64], transfer: NDArray[np.int64] | None
) -> float | None:
    """Bus bandwidth in GB/s (bytes per ns) over whole calls; ``None`` if a size is unknown."""
    moved = 0.0
    for call in calls.tolist():
        each = found.calls[call]
        if each.bytes is None or each.group_size is None:
            return None
        moved += bus_factor(each.kind, each.group_size) * each.bytes
    took = transfer[calls] if transfer is not None else (found.end - found.start)[calls]
    return moved / int(took.sum()) if took.sum() > 0 else None
