"""Every collective of one trace: what it is, when it ran, and where nothing hid it.

On a device a collective is its kernels, told by name and joined to the host's record of the call
(``record_param_comms``, ``nccl:*``) through the launch, or to what the kernel itself tells. Several
kernels of one call are one collective. On the CPU it is the range of the backend (``gloo:*``).

Where collectives overlap on a device, the instant counts for the one that began first, so that
sums over collectives equal the unions of ``device_time``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.collective_names import HOST_RANGE
from workbench.analysis.collective_records import Call, Records
from workbench.analysis.communication_names import is_communication
from workbench.analysis.device_time import work_classes
from workbench.analysis.devices import device_indices, work_rows
from workbench.analysis.host import claimed_spans
from workbench.analysis.intervals import Spans, intersect, subtract
from workbench.trace.table import DEVICE_WORK, Kind, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workbench.analysis.launches import Launches
    from workbench.analysis.ranges import Range
    from workbench.analysis.steps import Steps

HOST = -1
"""The device of a collective that runs on the host."""
_NOT_HOST = (*DEVICE_WORK, Kind.DEVICE_ANNOTATION)


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces:
    """Disjoint stretches of time on each device, and the call that each belongs to."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    call: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Collectives:
    """The collectives of one trace in order of their start; small beside the trace."""

    calls: tuple[Call, ...]
    start: NDArray[np.int64]
    """First start of each call, on its device's clock."""
    end: NDArray[np.int64]
    device: NDArray[np.int64]
    clock: NDArray[np.int64]
    """Nanoseconds that bring each call's times to the host's clock."""
    owned: Pieces
    """All time in collectives, each instant once."""
    exposed: Pieces
    """The part of it in which the device computes nothing."""

    def __len__(self) -> int:
        return len(self.calls)


def find_collectives(
    trace: Trace, launches: Launches, steps: Steps | None, window: Range | None
) -> Collectives | None:
    """The collectives of a trace; ``None`` when it cannot tell whether there were any.

    Args:
        trace: The event table.
        launches: Joins kernels to the calls that launched them.
        steps: Tells the loop's thread, for a trace without a device.
        window: Range of the host, for a trace without a device.
    """
    devices = device_indices(trace)
    if not devices and not len(trace.events.rows(Kind.OPERATOR, Kind.ANNOTATION)):
        return None
    records = Records(trace, launches)
    rows = collective_rows(trace)
    kernels = rows[trace.events.of_kind(Kind.KERNEL)[rows]]
    owner, calls = records.calls(rows)
    start = np.full(len(calls), np.iinfo(np.int64).max)
    end = np.full(len(calls), np.iinfo(np.int64).min)
    np.minimum.at(start, owner, trace.events.ts[rows])
    np.maximum.at(end, owner, trace.events.end[rows])
    device = np.full(len(calls), HOST, np.int64)
    device[owner] = np.where(np.isin(rows, kernels), trace.events.device[rows], HOST)
    offsets = {HOST: 0, **launches.clock_offset}
    owned = _owned(trace, rows, owner, device)
    return Collectives(
        calls=calls,
        start=start,
        end=end,
        device=device,
        clock=np.array([offsets.get(int(d), 0) for d in device], np.int64),
        owned=owned,
        exposed=_exposed(trace, owned, device, steps, window),
    )


def collective_rows(trace: Trace) -> NDArray[np.int64]:
    """Rows of collectives in order of their start: kernels, or the host's ranges where none are."""
    kernels = _kernels(trace) if device_indices(trace) else np.empty(0, np.int64)
    rows = kernels if len(kernels) else _host_ranges(trace)
    return rows[np.lexsort((trace.events.end[rows], trace.events.ts[rows]))]


def _kernels(trace: Trace) -> NDArray[np.int64]:
    """The kernels that ``device_time`` calls communication."""
    rows = work_rows(trace, None)
    rows = rows[trace.events.kind[rows] == Kind.KERNEL]
    spoken = trace.name_codes(is_communication)
    return np.asarray(rows[np.isin(trace.events.name[rows], spoken)], np.int64)


def _host_ranges(trace: Trace) -> NDArray[np.int64]:
    codes = trace.name_codes(lambda name: bool(HOST_RANGE.match(name)))
    events = trace.events
    found = np.isin(events.name, codes) & ~events.of_kind(*_NOT_HOST)
    return np.flatnonzero(found).astype(np.int64)


def _owned(
    trace: Trace,
    rows: NDArray[np.int64],
    owner: NDArray[np.int64],
    device: NDArray[np.int64],
) -> Pieces:
    """Per device, each instant for the record that began first."""
    starts, ends, calls = [], [], []
    for index in np.unique(device):
        mine = device[owner] == index
        start, end = trace.events.ts[rows[mine]], trace.events.end[rows[mine]]
        reach = np.maximum.accumulate(np.concatenate(([np.iinfo(np.int64).min], end[:-1])))
        start = np.maximum(start, reach)
        real = end > start
        starts.append(start[real])
        ends.append(end[real])
        calls.append(owner[mine][real])
    if not starts:
        nothing = np.empty(0, np.int64)
        return Pieces(start=nothing, end=nothing, call=nothing)
    return Pieces(
        start=np.concatenate(starts), end=np.concatenate(ends), call=np.concatenate(calls)
    )


def _exposed(
    trace: Trace,
    owned: Pieces,
    device: NDArray[np.int64],
    steps: Steps | None,
    window: Range | None,
) -> Pieces:
    starts, ends, calls = [], [], []
    for index in np.unique(device):
        mine = device[owned.call] == index
        spans = Spans(owned.start[mine], owned.end[mine])
        if index != HOST:
            left = subtract(spans, work_classes(trace, int(index)).compute)
        elif window is not None:
            left = intersect(spans, claimed_spans(trace, window, steps)["communication"])
        else:
            continue
        at = np.searchsorted(spans.start, left.start, "right") - 1
        starts.append(left.start)
        ends.append(left.end)
        calls.append(owned.call[mine][at])
    nothing = np.empty(0, np.int64)
    return Pieces(
        start=np.concatenate([nothing, *starts]),
        end=np.concatenate([nothing, *ends]),
        call=np.concatenate([nothing, *calls]),
    )
