"""Gives every row its kind: by category, else by name, stream or process."""

import numpy as np
from numpy.typing import NDArray

from workbench.trace.categories import BY_NAME, KINDS, KINDS_BY_PROCESS
from workbench.trace.gather import Gatherer
from workbench.trace.table import DEVICE_WORK, Kind, Lane


def kinds(gathered: Gatherer, lanes: tuple[Lane, ...]) -> NDArray[np.uint8]:
    """The kind of every row so far; device work without a device number gets one.

    MTIA writes kernels and copies into one category: its records on a stream are work of the
    device, and DMA requests among them are copies.
    """
    categories = list(gathered.categories)
    table = np.array([KINDS.get(name.lower(), Kind.OTHER) for name in categories], np.uint8)
    category = gathered.durations["category"].peek()
    kind = table[category] if len(table) else np.empty(0, np.uint8)
    lane = gathered.durations["lane"].peek()
    _by_process(kind, lane, lanes)
    mixed = [code for code, name in enumerate(categories) if name.lower() in BY_NAME]
    if mixed:
        _by_name(kind, np.flatnonzero(np.isin(category, mixed)), gathered)
    _number_devices(kind, lane, lanes, gathered)
    return kind


def _by_process(kind: NDArray[np.uint8], lane: NDArray[np.int32], lanes: tuple[Lane, ...]) -> None:
    for process, meaning in KINDS_BY_PROCESS.items():
        of_process = [i for i, line in enumerate(lanes) if process in (line.process, line.pid)]
        if of_process:
            kind[(kind == Kind.OTHER) & np.isin(lane, of_process)] = meaning


def _by_name(kind: NDArray[np.uint8], rows: NDArray[np.intp], gathered: Gatherer) -> None:
    copies = [
        c for name, c in gathered.names.table.items() if name.lower().startswith("dma_request")
    ]
    streamed = gathered.arguments.numbers["stream"].tail(rows) >= 0
    copied = np.isin(gathered.durations["name"].peek()[rows], copies)
    kind[rows] = np.where(streamed, np.where(copied, Kind.MEMCPY, Kind.KERNEL), Kind.OTHER)


def _number_devices(
    kind: NDArray[np.uint8],
    lane: NDArray[np.int32],
    lanes: tuple[Lane, ...],
    gathered: Gatherer,
) -> None:
    """Processes of device work whose records name no device count as devices 0, 1, 2."""
    column = gathered.arguments.numbers["device"]
    work = np.flatnonzero(np.isin(kind, DEVICE_WORK))
    nameless = work[column.tail(work) < 0]
    if not len(nameless):
        return
    numbers: dict[str, int] = {}
    of_lane = np.zeros(len(lanes), np.int64)
    for code in np.unique(lane[nameless]).tolist():
        of_lane[code] = numbers.setdefault(lanes[code].pid, len(numbers))
    column.put(nameless, of_lane[lane[nameless]])
