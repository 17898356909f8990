"""Counters that viewers draw above the events: queue, share of busy time, speed of copies."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import device_indices, work_rows
from workbench.analysis.intervals import covered_until, union
from workbench.analysis.launches import Launches
from workbench.trace.table import Counters, Kind, Trace

BINS = 1000
LEAST_BIN_NS = 10_000

Points = tuple[NDArray[np.int64], NDArray[np.float64]]


def with_counters(trace: Trace, launches: Launches) -> Trace:
    """The trace with three more kinds of counters for every device.

    ``queue``: work launched on a stream and not begun, on the host's clock; left out where the
    clocks of host and device cannot be compared. ``busy``: percent of each of up to 1000 equal
    parts of the recording in which any work ran. ``copies``: GB/s of the copies that run, from
    their bytes, where these were recorded.
    """
    old = trace.counters
    names = list(old.names)
    ts, series, value, lane = [old.ts], [old.series], [old.value], [old.lane]
    for device in device_indices(trace):
        rows = work_rows(trace, device)
        tracks = {f"device {device} busy %": _busy(trace, rows)}
        tracks |= _queues(trace, launches, device, rows)
        tracks[f"device {device} copies GB/s"] = _copies(trace, rows)
        for name, (moments, levels) in tracks.items():
            if len(moments):
                ts.append(moments)
                value.append(levels)
                series.append(np.full(len(moments), len(names), np.int32))
                lane.append(np.full(len(moments), trace.events.lane[rows[0]], np.int32))
                names.append(name)
    added = Counters(
        ts=np.concatenate(ts),
        series=np.concatenate(series),
        value=np.concatenate(value),
        lane=np.concatenate(lane),
        names=tuple(names),
    )
    return replace(trace, counters=added)


def _busy(trace: Trace, rows: NDArray[np.intp]) -> Points:
    events = trace.events
    spans = union(events.ts[rows], events.end[rows])
    if not len(spans.start):
        return _NOTHING
    low, high = int(spans.start[0]), int(spans.end[-1])
    count = int(np.clip((high - low) // LEAST_BIN_NS, 1, BINS))
    edges = np.linspace(low, high, count + 1).astype(np.int64)
    share = np.diff(covered_until(spans, edges)) / np.diff(edges) * 100
    return edges, np.append(share.round(2), 0.0)


def _queues(
    trace: Trace, launches: Launches, device: int, rows: NDArray[np.intp]
) -> dict[str, Points]:
    if not launches.clock_ok.get(device, True):
        return {}
    events = trace.events
    rows = rows[launches.launch[rows] >= 0]
    found = {}
    for stream in np.unique(events.stream[rows]).tolist():
        there = rows[events.stream[rows] == stream]
        called = events.ts[launches.launch[there]]
        begun = events.ts[there] + launches.clock_offset.get(device, 0)
        ones = np.ones(len(there))
        found[f"device {device} stream {stream} queue"] = _levels(called, begun, ones)
    return found


def _copies(trace: Trace, rows: NDArray[np.intp]) -> Points:
    events = trace.events
    rows = rows[(events.kind[rows] == Kind.MEMCPY) & (events.bytes[rows] > 0)]
    rows = rows[events.dur[rows] > 0]
    speed = events.bytes[rows] / events.dur[rows]
    return _levels(events.ts[rows], events.end[rows], speed)


def _levels(up: NDArray[np.int64], down: NDArray[np.int64], height: NDArray[np.float64]) -> Points:
    """Moments at which a sum changes, and the sum from there on."""
    ts = np.concatenate((up, down))
    order = np.argsort(ts, kind="stable")
    level = np.cumsum(np.concatenate((height, -height))[order]).round(6)
    ts = ts[order]
    last = np.append(ts[1:] != ts[:-1], True) if len(ts) else np.empty(0, bool)
    return ts[last], level[last]


_NOTHING: Points = (np.empty(0, np.int64), np.empty(0))
