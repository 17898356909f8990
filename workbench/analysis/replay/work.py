"""The device work of some steps as columns: when it ran, who launched it, what it followed."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import work_rows
from workbench.analysis.evidence import Evidence
from workbench.analysis.host_records import SYNCHRONIZATION
from workbench.analysis.nesting import Times
from workbench.analysis.replay.span import Span

Index = NDArray[np.int64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """Kernels, copies and sets, sorted by start, on the host's clock."""

    row: Index
    start: Times
    end: Times
    call: Index
    """Row of the launching call, or -1."""
    call_start: Times
    call_end: Times
    lane: Index
    """Lane of the thread that launched it, or -1."""
    device: Index
    stream: Index
    """Stream of any device, numbered from 0."""
    fixed: Marks
    """Launched before the steps: stays where it was recorded."""
    blocking: Marks
    """Its call returns when it is done."""
    later: Marks
    """Not the first that its call brought to its stream, as in a graph."""
    before: Index
    """The earlier work on its stream that ended last, or -1."""

    def __len__(self) -> int:
        return len(self.row)


def work_of(evidence: Evidence, span: Span) -> Work:
    """All work that was launched in the steps, and what else ran on the devices meanwhile."""
    trace, launches = evidence.trace, evidence.launches
    events = trace.events
    rows = work_rows(trace, None)
    offset = np.zeros(len(rows), np.int64)
    for device, ns in launches.clock_offset.items():
        offset[events.device[rows] == device] = ns
    start, end = events.ts[rows] + offset, events.end[rows] + offset
    call = launches.launch[rows].astype(np.int64)
    called = np.where(call >= 0, events.ts[np.maximum(call, 0)], start)
    kept = (end > span.host_start) & (called < span.host_end) & (start <= span.end)
    rows, start, end, call, called = (each[kept] for each in (rows, start, end, call, called))
    order = np.lexsort((rows, start))
    rows, start, end, call, called = (each[order] for each in (rows, start, end, call, called))
    known = call >= 0
    fixed = called < span.host_start
    key = events.device[rows].astype(np.int64) << 32 | (events.stream[rows].astype(np.int64) + 1)
    stream = np.unique(key, return_inverse=True)[1].astype(np.int64)
    return Work(
        row=rows.astype(np.int64),
        start=start,
        end=end,
        call=call,
        call_start=called,
        call_end=np.where(known, events.end[np.maximum(call, 0)], start),
        lane=np.where(known, events.lane[np.maximum(call, 0)], -1).astype(np.int64),
        device=events.device[rows].astype(np.int64),
        stream=stream,
        fixed=fixed,
        blocking=known & np.isin(call, _blocking(evidence)),
        later=_later(call, stream),
        before=_before(stream, start, end),
    )


def _blocking(evidence: Evidence) -> Index:
    """Rows of the calls that show synchronization by themselves."""
    records = evidence.records
    return np.asarray(records.nesting.row[records.own == SYNCHRONIZATION], np.int64)


def _later(call: Index, stream: Index) -> Marks:
    """Whether earlier work of the same stream came by the same call."""
    later = np.zeros(len(call), bool)
    order = np.lexsort((np.arange(len(call)), stream, call))
    same = (np.diff(call[order]) == 0) & (np.diff(stream[order]) == 0) & (call[order][1:] >= 0)
    later[order[1:][same]] = True
    return later


def _before(stream: Index, start: Times, end: Times) -> Index:
    """Per entry, the earlier one of its stream that ended last; entries are sorted by start."""
    before = np.full(len(stream), -1, np.int64)
    order = np.argsort(stream, kind="stable")
    bounds = np.flatnonzero(np.diff(stream[order], prepend=-1, append=-1))
    for first, last in pairwise(bounds.tolist()):
        mine = order[first:last]
        reach = np.maximum.accumulate(end[mine])
        holder = np.maximum.accumulate(np.where(end[mine] == reach, np.arange(len(mine)), 0))
        before[mine[1:]] = mine[holder[:-1]]
    return before
