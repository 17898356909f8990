"""XLA profiles: which lines are work, whom it belongs to, and what damage leaves."""

from pathlib import Path

import pytest

from tests.trace.formats.tables import column, rows
from tests.trace.formats.xspace import Plane, chunk, space
from workbench import trace
from workbench.analysis.launches import join_launches
from workbench.analysis.steps import find_steps
from workbench.errors import TraceError
from workbench.trace.table import DEVICE_WORK, Kind, Trace

US = 1_000_000
"""Picoseconds in a microsecond."""


def read(*planes: Plane) -> Trace:
    return trace.read(space(*planes))


def test_operations_of_a_tpu_are_its_work() -> None:
    tpu = Plane("/device:TPU:1", device_type_string="TPU v5 lite")
    tpu.line("XLA Modules", ("jit_step", 0, 40 * US), ident=2)
    tpu.line("XLA Ops", ("fusion.1", 0, 10 * US), ("copy.2", 12 * US, 3 * US), ident=3)
    tpu.line("Async XLA Ops", ("all-reduce-start", 5 * US, 20 * US), ident=4)
    tpu.line("Steps", ("7", 0, 40 * US), ident=5)
    found = read(tpu)
    assert rows(found, *DEVICE_WORK) == [
        ("fusion.1", "kernel", 0, 10_000),
        ("all-reduce-start", "kernel", 5_000, 20_000),
        ("copy.2", "memcpy", 12_000, 3_000),
    ]
    assert {name for name, *_ in rows(found, Kind.DEVICE_ANNOTATION)} == {"jit_step", "7"}
    device = found.devices[0]
    assert (device.index, device.type, device.name) == (1, "tpu", "TPU v5 lite")
    assert set(column(found, "device")) == {1}


def test_a_loop_does_not_count_beside_what_it_holds() -> None:
    # while runs 0-30; its body runs 1-9 and 11-29, so 26 us of work and not 56.
    tpu = Plane("/device:TPU:0").line(
        "XLA Ops", ("while.3", 0, 30 * US), ("dot.1", US, 8 * US), ("add.2", 11 * US, 18 * US)
    )
    found = read(tpu)
    assert sum(column(found, "dur", *DEVICE_WORK)) == 26_000
    assert rows(found, Kind.DEVICE_ANNOTATION) == [("while.3", "device_annotation", 0, 30_000)]


def test_neighbours_in_picoseconds_stay_neighbours_in_nanoseconds() -> None:
    # 0-1.5 ns and 1.5-3.6 ns: rounding both ends down keeps them apart, 0-1 and 1-3.
    found = read(Plane("/device:TPU:0").line("XLA Ops", ("a", 0, 1500), ("b", 1500, 2100)))
    assert [row[2:] for row in rows(found)] == [(0, 1), (1, 2)]


def test_streams_of_a_gpu_are_work_and_lines_derived_from_them_are_not() -> None:
    gpu = Plane("/device:GPU:0", device_vendor="Nvidia", compute_cap_major=9, memory_size=80)
    gpu.line("Stream #13(Compute)", ("gemm", 0, US, {"correlation_id": 5}), ident=13)
    gpu.line("Stream #14(MemcpyH2D)", ("MemcpyH2D", 2 * US, US), ident=14)
    gpu.line("XLA Ops", ("dot.1", 0, US), ident=20)
    found = read(gpu)
    assert rows(found, *DEVICE_WORK) == [
        ("gemm", "kernel", 0, 1000),
        ("MemcpyH2D", "memcpy", 2000, 1000),
    ]
    assert column(found, "stream", *DEVICE_WORK) == [13, 14]
    assert (found.devices[0].type, found.devices[0].arch) == ("cuda", "9.0")
    assert found.devices[0].memory_bytes == 80
    amd = read(
        Plane("/device:GPU:0", device_vendor="AMD", compute_cap_major=9, compute_cap_minor=4)
    )
    assert [(device.type, device.arch) for device in amd.devices] == [("hip", "gfx94X")]


def gpu_step() -> tuple[Plane, Plane]:
    """A step of 10 us on the host that launches one kernel."""
    host = Plane("/host:CPU")
    host.line(
        "python",
        ("train", 0, 10 * US, {"step_num": 4}),
        ("$loop.py:3 step", US, 8 * US),
        ("cuLaunchKernel", 2 * US, US, {"correlation_id": 9}),
        ("MyRange", 4 * US, US),
        ("PjitFunction(f)", 5 * US, US),
        ("Allocation", 6 * US, 0),
    )
    gpu = Plane("/device:GPU:0")
    gpu.line("Stream #1(Compute)", ("gemm", 6 * US, 3 * US, {"correlation_id": 9}))
    return host, gpu


def test_what_host_records_are() -> None:
    found = read(*gpu_step())
    kinds = {name: kind for name, kind, *_ in rows(found)}
    assert kinds == {
        "ProfilerStep#4": "annotation",
        "$loop.py:3 step": "python",
        "cuLaunchKernel": "driver",
        "MyRange": "annotation",
        "PjitFunction(f)": "operator",
        "gemm": "kernel",
    }
    assert [found.names[code] for code in found.instants.name] == ["Allocation"]


def test_a_step_counts_where_device_work_is_joined_to_the_host() -> None:
    found = read(*gpu_step())
    steps = find_steps(found, join_launches(found))
    assert steps is not None
    assert steps.numbers == (4,)


def test_a_step_stays_a_range_where_nothing_joins_the_device_to_the_host() -> None:
    # Without launches no step has a completion: a window of steps would be empty.
    host = Plane("/host:CPU").line("python", ("train", 0, 10 * US, {"step_num": "4"}))
    tpu = Plane("/device:TPU:0").line("XLA Ops", ("dot", US, US))
    assert rows(read(host, tpu), Kind.ANNOTATION) == [("train", "annotation", 0, 10_000)]
    alone = Plane("/host:CPU").line("python", ("train", 0, 10 * US, {"step_num": "4"}))
    assert rows(read(alone)) == [("ProfilerStep#4", "annotation", 0, 10_000)]


def test_operations_of_a_tpu_belong_to_the_run_that_the_host_started() -> None:
    tpu = Plane("/device:TPU:0")
    tpu.line("XLA Ops", ("a", 20 * US, US), ("b", 50 * US, US), ident=1)
    tpu.line(
        "XLA Modules",
        ("jit_f", 19 * US, 5 * US, {"run_id": 77}),
        ("jit_f", 49 * US, 5 * US, {"run_id": 78}),
        ident=2,
    )
    host = Plane("/host:CPU").line(
        "main",
        ("Enqueue", 10 * US, US, {"run_id": 77, "device_ordinal": 0}),
        ("Enqueue", 40 * US, US, {"run_id": 78, "device_ordinal": 0}),
        ("Completed", 55 * US, US, {"run_id": 78, "device_ordinal": 0}),
    )
    found = read(tpu, host)
    launches = join_launches(found)
    work = found.events.rows(*DEVICE_WORK)
    assert [int(found.events.ts[launches.launch[row]]) for row in work] == [0, 30_000]
    assert [row[:2] for row in rows(found, Kind.ANNOTATION)] == [("Completed", "annotation")]


def test_unix_time_comes_from_the_lines_or_from_the_plane_that_tells_it() -> None:
    now = 1_771_595_650_000_000_000
    absolute = Plane("/host:CPU").line("main", ("f::g", 0, US), start_ns=now)
    assert read(absolute).base_ns == now
    relative = Plane("/host:CPU").line("main", ("f::g", 0, US), start_ns=500)
    task = Plane("Task Environment", profile_start_time=now)
    assert read(relative, task).base_ns == now + 500
    assert read(Plane("/host:CPU").line("main", ("f::g", 0, US), start_ns=500)).base_ns is None


def test_devices_of_two_hosts_with_the_same_name_are_two_devices() -> None:
    planes = [Plane("/device:TPU:0").line("XLA Ops", ("dot", 0, US)) for _ in range(2)]
    assert column(read(*planes), "device") == [0, 1]


def test_a_file_cut_in_a_plane_gives_the_planes_before() -> None:
    host, gpu = gpu_step()
    whole = space(host, gpu)
    found = trace.read(whole[:-7])
    assert len(found.events) == 5
    (cut, left_out) = found.violations
    assert (cut.code, left_out.code) == ("truncated", "unreadable_records")
    assert f"byte {len(whole) - 7:,}" in cut.message


def test_a_damaged_plane_costs_itself() -> None:
    host, gpu = gpu_step()
    damaged = chunk(1, chunk(2, "/device:GPU:1") + b"\x0f\xff")
    found = trace.read(space(host) + damaged + space(gpu))
    assert len(found.events) == 6
    assert [violation.code for violation in found.violations] == ["unreadable_records"]
    assert "there is no wire type 7" in found.violations[0].message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (chunk(1, chunk(2, "/host:CPU") + b"\x1b\x01"), "at byte 13, there is no wire type 3"),
        (b"\n\x7f" + chunk(2, "/host:CPU"), "at byte 0, field 1 is longer than what holds it"),
        (
            space(Plane("/host:CPU").line("a", ("b", 2**40, 2**40)))
            .decode("utf-8", "replace")
            .encode(),
            "read as text and saved again",
        ),
    ],
)
def test_what_cannot_be_read_says_where(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.xplane.pb"
    path.write_bytes(data)
    with pytest.raises(TraceError, match=message):
        trace.read(path)


def test_absurd_numbers_are_left_out_and_counted() -> None:
    host = Plane("/host:CPU").line("a", ("f::g", US, -1), ("f::h", 0, US), ("f::i", 2 * US, US))
    found = read(host)
    assert [row[0] for row in rows(found)] == ["f::h", "f::i"]
    assert [violation.code for violation in found.violations] == ["missing_timestamps"]


def test_a_profile_without_events_says_so() -> None:
    found = read(Plane("/host:CPU"))
    assert len(found.events) == 0
    assert [violation.code for violation in found.violations] == ["no_events"]


@pytest.mark.traces
def test_the_profile_of_jax_on_a_gpu(traces_root: Path) -> None:
    # The counts and sums are those that XLA's own trace viewer (xprof) gives for this file.
    path = traces_root / "AMD-AGI__TraceLens/tests__traces__mi300__jax08_gemm__tw003.xplane.pb"
    found = trace.read(path)
    streams = dict(zip(column(found, "stream", *DEVICE_WORK), [0] * 100, strict=False))
    work = zip(
        column(found, "stream", *DEVICE_WORK), column(found, "dur", *DEVICE_WORK), strict=True
    )
    for stream, dur in work:
        streams[stream] += dur
    assert streams == {16: 3_415_244, 17: 60_240}
    assert len(found.events.rows(*DEVICE_WORK)) == 54
    assert (join_launches(found).launch >= 0).sum() == 54
    python = [code for code, lane in enumerate(found.lanes) if lane.thread == "python"]
    here = found.events.lane == python[0]
    assert (int(here.sum()), int(found.events.dur[here].sum())) == (3392, 84_542_951)
    assert (found.base_ns or 0) // 10**9 == 1_771_595_650
    assert not found.violations


@pytest.mark.traces
def test_the_profile_of_pytorch_xla(traces_root: Path) -> None:
    (path,) = (traces_root / "volcengine__verl").glob("*.xplane.pb")
    found = trace.read(path)
    assert len(found.events) + len(found.instants.ts) == events_in(path.read_bytes())
    assert not found.devices


def events_in(data: bytes) -> int:
    """How often the plainest reading of the wire format meets an event of a line."""

    def messages(raw: bytes, wanted: int) -> list[bytes]:
        at, found = 0, []
        while at < len(raw):
            key, at = plain(raw, at)
            size, at = plain(raw, at) if key & 7 == 2 else (0, plain(raw, at)[1])
            if key >> 3 == wanted and key & 7 == 2:
                found.append(raw[at : at + size])
            at += size
        return found

    def plain(raw: bytes, at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (raw[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if raw[at - 1] < 0x80:
                return value, at

    lines = [line for plane in messages(data, 1) for line in messages(plane, 3)]
    return sum(len(messages(line, 4)) for line in lines)


@pytest.mark.traces
def test_a_profile_that_was_saved_as_text_is_named_for_it(traces_root: Path) -> None:
    (path,) = (traces_root / "openxla__xprof").glob("*.xplane.pb")
    with pytest.raises(TraceError, match="every byte above 127 was replaced"):
        trace.read(path)
