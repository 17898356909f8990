"""Mutated and arbitrary files of every format: a Trace or a TraceError, nothing else, and soon."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trace.formats.nsight_export import call, export, kernel, nvtx, strings
from tests.trace.formats.test_lane_file import FPGA
from tests.trace.formats.test_rocprofv3 import WHOLE, document
from tests.trace.formats.test_xplane import gpu_step
from tests.trace.formats.xspace import chunk, space
from workbench import trace
from workbench.errors import TraceError

pytestmark = pytest.mark.slow


BOUNDED = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
CUTS = st.integers(0, 10**6)
CHANGES = st.lists(st.tuples(CUTS, st.integers(0, 255)), min_size=1, max_size=6)


@cache
def database() -> bytes:
    with TemporaryDirectory() as folder:
        path = export(
            Path(folder) / "r.sqlite",
            StringIds=strings("cudaLaunchKernel", "gemm"),
            CUPTI_ACTIVITY_KIND_RUNTIME=[call(1, 100, 120, 1)],
            CUPTI_ACTIVITY_KIND_KERNEL=[kernel(2, 150, 190, 1)],
            NVTX_EVENTS=[nvtx("forward", 5, 50)],
        )
        return path.read_bytes()


SEEDS = {
    "xplane": lambda: space(*gpu_step()),
    "nsight": database,
    "rocprofv3": lambda: document(WHOLE),
    "lanes": FPGA.encode,
}


def survives(data: bytes) -> None:
    try:
        found = trace.read(data, size_limit=1 << 24)
    except TraceError:
        return
    assert (found.events.dur >= 0).all()
    assert not len(found.events) or found.events.ts[0] == 0
    assert all(name.encode() is not None for name in found.names)
    assert len(found.lanes) > int(found.events.lane.max(initial=-1))
    json.dumps([violation.message for violation in found.violations])


@pytest.mark.parametrize("seed", SEEDS)
@given(changes=CHANGES, cut=CUTS)
@BOUNDED
def test_changed_and_cut_bytes(seed: str, changes: list[tuple[int, int]], cut: int) -> None:
    whole = SEEDS[seed]()
    data = bytearray(whole)
    for place, value in changes:
        data[place % len(data)] = value
    survives(bytes(data))
    survives(whole[: cut % len(whole)])


@pytest.mark.parametrize("seed", SEEDS)
@given(start=st.integers(0, 10**6), length=st.integers(0, 60), put=st.binary(max_size=60))
@BOUNDED
def test_parts_taken_out_and_put_in(seed: str, start: int, length: int, put: bytes) -> None:
    whole = SEEDS[seed]()
    place = start % len(whole)
    survives(whole[:place] + put + whole[place + length :])


@pytest.mark.parametrize(
    "head",
    [
        b"\n\x20\x12\x09/host:CPU",
        b"SQLite format 3\0",
        b'{"rocprofiler-sdk-tool": [',
        b"lane,kind,name,start,duration\n",
    ],
)
@given(rest=st.binary(max_size=200))
@BOUNDED
def test_anything_after_the_sign_of_a_format(head: bytes, rest: bytes) -> None:
    survives(head + rest)


@given(
    st.dictionaries(
        st.sampled_from(["start", "end", "globalPid", "deviceId", "streamId", "correlationId"]),
        st.none()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats()
        | st.text(max_size=5)
        | st.binary(max_size=5),
    )
)
@settings(BOUNDED, max_examples=30)
def test_any_values_in_a_table(values: dict[str, object]) -> None:
    with TemporaryDirectory() as folder:
        row = kernel(1, 10, 20, 1) | values
        survives(
            export(
                Path(folder) / "r.sqlite",
                StringIds=strings("gemm"),
                CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 10, 20, 1), row],
            ).read_bytes()
        )


def test_a_length_that_lies_takes_no_memory() -> None:
    # A plane that claims 2**62 bytes; a database that claims 2**31 pages.
    survives(b"\n\xff\xff\xff\xff\xff\xff\xff\xff\x3f\x12\x09/host:CPU")
    page_count = 28
    data = bytearray(database())
    data[page_count : page_count + 4] = b"\x7f\xff\xff\xff"
    survives(bytes(data))


def test_a_profile_of_countless_lines_takes_no_time() -> None:
    # Each line of two bytes would cost a hundred microseconds: more than 100,000 are refused.
    plane = chunk(2, "/host:CPU") + chunk(3, b"") * 100_001
    with pytest.raises(TraceError, match="more than 100,000 lines"):
        trace.read(chunk(1, plane))


def test_a_database_opened_by_path_is_as_safe(tmp_path: Path) -> None:
    whole, refused = database(), 0
    for place in range(100, len(whole), 97):
        path = tmp_path / "r.sqlite"
        path.write_bytes(whole[:place] + b"\xff" * 8 + whole[place + 8 :])
        try:
            trace.read(path)
        except TraceError:
            refused += 1
    assert refused > 0
