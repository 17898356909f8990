"""Where a device's time goes in a range: three classes of work, and idle.

All are lengths of unions over every stream of the device, so nothing exceeds the range, and always
``compute + exposed_communication + exposed_memory + idle = range``.
"""

from dataclasses import dataclass

import numpy as np

from workbench.analysis.communication_names import is_communication
from workbench.analysis.devices import work_rows
from workbench.analysis.intervals import Spans, clip, joined, subtract, total, union
from workbench.analysis.ranges import Range
from workbench.trace.table import Kind, Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceTime:
    """Nanoseconds of one device inside one range."""

    range: Range
    busy: int
    compute: int
    communication: int
    memory: int
    exposed_communication: int
    """Communication while no compute runs."""
    exposed_memory: int
    """Copies and sets while neither compute nor communication runs."""
    idle: int


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkClasses:
    """The work of one device as spans, on its own clock."""

    compute: Spans
    communication: Spans
    memory: Spans
    all: Spans


def work_classes(trace: Trace, device: int | None) -> WorkClasses:
    """Unions over all streams: of each class of work, and of everything."""
    events = trace.events
    rows = work_rows(trace, device)
    start, end = events.ts[rows], events.end[rows]
    kernel = events.kind[rows] == Kind.KERNEL
    spoken = trace.name_codes(is_communication)
    communication = kernel & np.isin(events.name[rows], spoken)
    compute = kernel & ~communication
    return WorkClasses(
        compute=union(start[compute], end[compute]),
        communication=union(start[communication], end[communication]),
        memory=union(start[~kernel], end[~kernel]),
        all=union(start, end),
    )


def device_time(trace: Trace, device: int | None, range: Range) -> DeviceTime:  # noqa: A002
    """Busy, idle and class times of a device (``None``: of all devices as one) in a range."""
    work = work_classes(trace, device)
    lo, hi = range.start, range.end
    compute = clip(work.compute, lo, hi)
    communication = clip(work.communication, lo, hi)
    memory = clip(work.memory, lo, hi)
    busy = clip(work.all, lo, hi)
    exposed_communication = total(subtract(communication, compute))
    return DeviceTime(
        range=range,
        busy=total(busy),
        compute=total(compute),
        communication=total(communication),
        memory=total(memory),
        exposed_communication=exposed_communication,
        exposed_memory=total(subtract(memory, joined(compute, communication))),
        idle=range.length - total(busy),
    )
