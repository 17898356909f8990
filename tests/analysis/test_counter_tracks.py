"""Counters for viewers: the level at every moment, by hand."""

import json

from tests.kineto import Kineto
from workbench.analysis.counter_tracks import with_counters
from workbench.analysis.launches import join_launches
from workbench.trace import read
from workbench.trace.table import Trace

Points = list[tuple[float, float]]


def counted(made: Kineto) -> tuple[Trace, dict[str, Points]]:
    """The trace with counters, and every counter as (time in µs, value)."""
    trace = read(json.dumps(made.document()).encode())
    trace = with_counters(trace, join_launches(trace))
    found: dict[str, Points] = {name: [] for name in trace.counters.names}
    counters = trace.counters
    for ts, series, value in zip(counters.ts, counters.series, counters.value, strict=True):
        found[counters.names[series]].append((int(ts) / 1000, float(value)))
    return trace, found


def test_the_queue_grows_with_launches_and_shrinks_with_starts() -> None:
    """Launched at 0, 10, 20; begun at 5, 30, 60."""
    made = Kineto(gpu=True)
    for number, (called, begun) in enumerate(((0, 5), (10, 30), (20, 60)), start=1):
        made.launched("k", call=(called, 2), kernel=(begun, 20), correlation=number)

    _, found = counted(made)

    assert found["device 0 stream 7 queue"] == [(0, 1), (5, 0), (10, 1), (20, 2), (30, 1), (60, 0)]


def test_busy_is_a_share_of_every_part_of_the_recording() -> None:
    """40 µs in parts of 10: 10 busy, then 5, nothing, and 10."""
    made = Kineto(gpu=True)
    made.kernel("a", 0, 15)
    made.kernel("b", 30, 10)

    _, found = counted(made)

    assert found["device 0 busy %"] == [(0, 100), (10, 50), (20, 0), (30, 100), (40, 0)]


def test_copies_at_once_add_up() -> None:
    """10 000 bytes in 10 µs are 1 GB/s; the second copy runs from 5 to 10 with 2 GB/s."""
    made = Kineto(gpu=True)
    made.kernel("Memcpy HtoD", 0, 10, cat="gpu_memcpy", bytes=10_000)
    made.kernel("Memcpy HtoD", 5, 5, cat="gpu_memcpy", stream=8, bytes=10_000)

    _, found = counted(made)

    assert found["device 0 copies GB/s"] == [(0, 1), (5, 3), (10, 0)]


def test_bytes_that_were_not_recorded_give_no_counter() -> None:
    made = Kineto(gpu=True)
    made.kernel("Memcpy HtoD", 0, 10, cat="gpu_memcpy")

    assert set(counted(made)[1]) == {"device 0 busy %"}


def test_a_trace_without_device_work_gets_none() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 10)

    assert counted(made)[1] == {}


def test_counters_stand_with_their_device_and_those_of_the_trace_stay() -> None:
    made = Kineto(gpu=True)
    made.kernel("a", 0, 15, device=1)
    made.events.append({"ph": "C", "name": "load", "pid": 5, "ts": 1, "args": {"v": 2}})

    trace, found = counted(made)
    counters = trace.counters
    pids = {
        counters.names[series]: trace.lanes[lane].pid
        for series, lane in zip(counters.series.tolist(), counters.lane.tolist(), strict=True)
    }

    assert found["load"] == [(1, 2)]
    assert pids == {"load": "5", "device 1 busy %": "1"}
