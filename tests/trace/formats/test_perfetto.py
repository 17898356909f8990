"""Perfetto traces as torch 2.14 writes them, and as other programs do."""

import gzip
import zlib
from typing import Any

import pytest

from tests.trace.formats.perfetto_trace import (
    BASE,
    NAMES,
    begin,
    end,
    interned,
    packet,
    process,
    thread,
    work,
)
from tests.trace.formats.tables import column, rows
from tests.trace.formats.xspace import chunk, number
from tests.trace.reference import codes
from workbench import trace
from workbench.analysis.launches import join_launches
from workbench.errors import TraceError
from workbench.trace.formats.perfetto_slices import Slices
from workbench.trace.table import Kind

HOST = process(1, 50, "python") + thread(2, 1, 50, 51, "main")
STREAMS = {100: "stream 07", 101: "stream 20"}


def torch_trace() -> bytes:
    """A step with an operator that launches one kernel; all begins stand before all ends."""
    return b"".join(
        [
            HOST,
            interned(NAMES, STREAMS),
            begin(0, 2, 1),
            begin(10_000, 2, 2, External_id=4, Input_Dims=[[2, 3], [], [3, 4]], Sequence_number=9),
            end(90_000, 2),
            end(40_000, 2),
            begin(20_000, 2, 4, cbid=211, correlation=7),
            end(25_000, 2),
            work(
                30_000,
                20_000,
                stage=1,
                queue=100,
                name=3,
                correlation=7,
                grid=[8, 2, 1],
                block=[64, 1, 1],
                graph_id=3,
                graph_node_id=5,
            ),
            work(60_000, 5_000, stage=2, queue=101, bytes=4096),
            work(30_000, 40_000, stage=4, queue=100, name=1),
        ]
    )


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_torch_writes(pack: Any) -> None:
    found = trace.read(pack(torch_trace()))
    assert rows(found) == [
        ("step", "annotation", 0, 90_000),
        ("aten::mm", "operator", 10_000, 30_000),
        ("cudaLaunchKernel", "runtime", 20_000, 5_000),
        ("step", "device_annotation", 30_000, 40_000),
        ("gemm", "kernel", 30_000, 20_000),
        ("Memcpy", "memcpy", 60_000, 5_000),
    ]
    assert found.base_ns == BASE
    assert column(found, "stream", Kind.KERNEL, Kind.MEMCPY) == [7, 20]
    assert column(found, "device", Kind.KERNEL, Kind.MEMCPY) == [0, 0]
    assert column(found, "bytes", Kind.MEMCPY) == [4096]
    assert column(found, "sequence", Kind.OPERATOR) == [9]
    assert found.shapes[found.events.shapes[1]] == "[[2,3],[],[3,4]]"
    assert join_launches(found).launch.tolist() == [-1, -1, -1, -1, 2, -1]
    launched = found.launch_configurations
    assert (launched.grid.tolist(), launched.block.tolist()) == ([[8, 2, 1]], [[64, 1, 1]])
    assert (launched.graph.tolist(), launched.graph_node.tolist()) == ([3], [5])
    assert [(device.index, device.type) for device in found.devices] == [(0, "cuda")]
    lane = found.lanes[found.events.lane[0]]
    assert (lane.pid, lane.tid, lane.process, lane.thread) == ("50", "51", "python", "main")
    assert codes(found) == {}


def test_categories_that_a_newer_encoder_interns_count() -> None:
    named = chunk(
        12, chunk(1, number(1, 5) + chunk(2, "cpu_op")) + chunk(2, number(1, 1) + chunk(2, "x"))
    )
    body = number(9, 1) + number(11, 2) + number(10, 1) + number(3, 5)
    text = HOST + packet(named, flags=1) + packet(chunk(11, body), at=BASE) + end(9, 2)
    assert rows(trace.read(text)) == [("x", "operator", 0, 9)]


def test_touching_neighbours_are_not_mixed_up_in_a_group() -> None:
    """As a stack, [0, 10) and [10, 20) would become [10, 10) and [0, 20)."""
    text = [HOST, interned(NAMES), begin(0, 2, 1), begin(10, 2, 2), begin(5, 3, 3)]
    text += [end(10, 2), end(20, 2), end(8, 3)]
    found = trace.read(b"".join(text))
    assert [row[2:] for row in rows(found)] == [(0, 10), (5, 3), (10, 10)]


def test_programs_that_trace_as_they_go_nest_as_a_stack() -> None:
    text = [HOST, interned(NAMES), begin(0, 2, 1), begin(10, 2, 2), end(20, 2), end(30, 2)]
    found = trace.read(b"".join(text))
    assert [row[2:] for row in rows(found)] == [(0, 30), (10, 10)]


def test_two_threads_that_write_packets_of_their_own() -> None:
    text = [HOST, thread(3, 1, 50, 52), interned(NAMES)]
    again = packet(chunk(12, chunk(2, number(1, 2) + chunk(2, "other"))), sequence=9, flags=1)
    text += [again, begin(5, 2, 1), begin(0, 3, 2, sequence=9), end(7, 3, sequence=9), end(9, 2)]
    found = trace.read(b"".join(text))
    assert [(row[0], *row[2:]) for row in rows(found)] == [("other", 0, 7), ("step", 5, 4)]


@pytest.mark.parametrize(
    ("marks", "slices", "unmatched"),
    [
        ("B0 E5", [(0, 5)], 0),
        ("B0 B0 E0 E5", [(0, 0), (0, 5)], 0),
        ("B0 B3 E5", [(3, 2)], 1),
        ("E5 B6 E7", [(6, 1)], 1),
        ("B0 B10 E10 E20 B1 B2 E9 E8", [(0, 10), (10, 10), (1, 8), (2, 6)], 0),
    ],
)
def test_pairs(marks: str, slices: list[tuple[int, int]], unmatched: int) -> None:
    found = Slices()
    for mark in marks.split():
        at = int(mark[1:])
        if mark[0] == "B":
            found.begin(at, 1, "it")
        else:
            found.end(at, 1)
    assert [each[:2] for each in found.slices()] == slices
    assert found.unmatched == unmatched


def test_counters_and_moments() -> None:
    track = chunk(60, number(1, 5) + number(5, 1) + chunk(2, "queue length") + chunk(8, b""))
    value = packet(chunk(11, number(9, 4) + number(11, 5) + number(30, 3)), at=BASE + 4)
    mark = packet(chunk(11, number(9, 3) + number(11, 2) + chunk(23, "mark")), at=BASE + 6)
    text = HOST + packet(track) + interned(NAMES) + begin(0, 2, 1) + value + mark + end(9, 2)
    found = trace.read(text)
    assert (found.counters.names, found.counters.value.tolist()) == (("queue length",), [3.0])
    assert found.counters.ts.tolist() == [4]
    assert found.instants.ts.tolist() == [6]


def test_a_clock_that_counts_from_packet_to_packet() -> None:
    """Perfetto's SDK writes such stamps: clock 64 in units of 1000 ns, each added to the last."""
    clock = number(1, 64) + number(2, BASE // 1000) + number(3, 1) + number(4, 1000)
    state = chunk(6, chunk(1, clock)) + chunk(59, number(58, 64) + chunk(11, number(11, 2)))
    text = HOST + interned(NAMES) + packet(state)
    text += packet(chunk(11, number(9, 1) + number(10, 1)), at=5)
    text += packet(chunk(11, number(9, 2)), at=7)
    found = trace.read(text)
    assert rows(found) == [("step", "annotation", 0, 7_000)]
    assert found.base_ns == BASE + 5_000


def test_compressed_packets() -> None:
    inner = begin(0, 2, 1) + end(9, 2)
    text = HOST + interned(NAMES) + packet(chunk(50, zlib.compress(inner)))
    assert [row[2:] for row in rows(trace.read(text))] == [(0, 9)]


def test_compressed_packets_without_end_are_refused() -> None:
    """Each holds itself again in a kilobyte."""
    bomb = packet(chunk(50, zlib.compress(packet(chunk(50, zlib.compress(b"\0" * 1000))))))
    found = trace.read(HOST + interned(NAMES) + begin(0, 2, 1) + end(9, 2) + bomb)
    assert codes(found) == {"unreadable_records": 1}


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_cut_file_gives_what_is_before_the_cut(share: float) -> None:
    whole = HOST + interned(NAMES) + b"".join(begin(i, 2, 2) + end(i + 1, 2) for i in range(500))
    found = trace.read(whole[: int(len(whole) * share)])
    assert len(found.events) == pytest.approx(500 * share, abs=20)
    assert codes(found).keys() & {"truncated", "unmatched_begin_end"}  # a begin may be the last


def test_every_byte_may_be_wrong() -> None:
    whole = torch_trace()
    for place in range(len(whole)):
        damaged = whole[:place] + bytes([whole[place] ^ 0x2F]) + whole[place + 1 :]
        try:
            trace.read(damaged)
        except TraceError as error:
            assert "trace given as bytes" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("data", "meaning"),
    [
        (HOST, "without slices of a program or work of a GPU"),
        (
            HOST + packet(chunk(11, number(9, 1) + chunk(22, "kernel_dispatch")), at=5),
            "rocprofv3 --output-format json",
        ),
        (b"\x0a\x05\x08\x07\x12\x01x" + b"\x12\x07pytorch", "ONNX"),
    ],
)
def test_what_it_is_instead(data: bytes, meaning: str) -> None:
    with pytest.raises(TraceError, match=meaning):
        trace.read(data)


def test_too_many_packets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.trace.formats.perfetto.PACKET_LIMIT", 10)
    with pytest.raises(TraceError, match="more than 10 packets"):
        trace.read(HOST + interned(NAMES) + begin(0, 2, 1) * 20)
