"""Exports of Nsight Systems: kernels joined to calls, NVTX ranges, and databases of strangers."""

import gzip
import sqlite3
from pathlib import Path

import pytest

from tests.trace.formats.nsight_export import PROCESS, THREAD, call, export, kernel, nvtx, strings
from tests.trace.formats.tables import column, rows
from workbench import trace
from workbench.analysis.launches import join_launches
from workbench.analysis.steps import find_steps
from workbench.errors import TraceError
from workbench.trace.formats import sqlite
from workbench.trace.formats.content import content_of
from workbench.trace.source import open_source
from workbench.trace.table import DEVICE_WORK, Kind

NAMES = strings("cudaLaunchKernel_v7000", "gemm(float*)", "cuLaunchKernel", "copy")
CALLS = [call(1, 100, 120, 1), call(3, 200, 230, 2)]
KERNELS = [kernel(2, 150, 190, 1), kernel(2, 240, 260, 2)]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return export(
        tmp_path / "report1.sqlite",
        StringIds=NAMES,
        CUPTI_ACTIVITY_KIND_RUNTIME=CALLS,
        CUPTI_ACTIVITY_KIND_KERNEL=KERNELS,
        TARGET_INFO_SESSION_START_TIME=[{"utcEpochNs": 1_700_000_000_000_000_000}],
        TARGET_INFO_GPU=[
            {"id": 0, "name": "NVIDIA H200", "totalMemory": 9, "computeMajor": 9, "computeMinor": 0}
        ],
        PROCESSES=[{"globalPid": PROCESS, "pid": 50, "name": "python"}],
        ThreadNames=[{"nameId": 4, "globalTid": THREAD}],
    )


def test_kernels_are_joined_to_the_calls_that_launched_them(report: Path) -> None:
    found = trace.read(report)
    assert rows(found) == [
        ("cudaLaunchKernel", "runtime", 0, 20),
        ("gemm(float*)", "kernel", 50, 40),
        ("cuLaunchKernel", "driver", 100, 30),
        ("gemm(float*)", "kernel", 140, 20),
    ]
    launches = join_launches(found)
    assert [int(launches.launch[row]) for row in found.events.rows(Kind.KERNEL)] == [0, 2]
    assert found.base_ns == 1_700_000_000_000_000_100
    assert (found.devices[0].name, found.devices[0].arch) == ("NVIDIA H200", "9.0")
    lane = found.lanes[found.events.lane[0]]
    assert (lane.pid, lane.tid, lane.process, lane.thread) == ("50", "51", "python", "copy")


def test_correlations_of_two_processes_do_not_mix(tmp_path: Path) -> None:
    # Both processes count from 1 and use stream 7 of the same GPU.
    other = 60 << 24
    path = export(
        tmp_path / "r.sqlite",
        StringIds=NAMES,
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(1, 100, 110, 1), call(1, 120, 130, 1, other | 61)],
        CUPTI_ACTIVITY_KIND_KERNEL=[
            kernel(2, 140, 150, 1),
            kernel(2, 160, 170, 1, globalPid=other),
        ],
    )
    found = trace.read(path)
    assert [int(row) for row in join_launches(found).launch] == [-1, -1, 0, 1]
    assert len(set(column(found, "stream", Kind.KERNEL))) == 2


def test_devices_are_counted_as_the_machine_counts_them(tmp_path: Path) -> None:
    # The process sees its only GPU as 0; in the machine it is number 3.
    path = export(
        tmp_path / "r.sqlite",
        StringIds=NAMES,
        CUPTI_ACTIVITY_KIND_KERNEL=KERNELS,
        TARGET_INFO_CUDA_DEVICE=[{"gpuId": 3, "cudaId": 0, "pid": 50}],
    )
    found = trace.read(path)
    assert column(found, "device") == [3, 3]
    assert [device.index for device in found.devices] == [3]


def test_copies_sets_and_waits_are_called_as_kineto_calls_them(tmp_path: Path) -> None:
    span = {"start": 10, "end": 30, "globalPid": PROCESS, "deviceId": 0, "streamId": 7}
    span["correlationId"] = 4
    path = export(
        tmp_path / "r.sqlite",
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(2, 1, 5, 1)],
        CUPTI_ACTIVITY_KIND_MEMCPY=[
            {**span, "bytes": 64, "copyKind": 1, "srcKind": 0, "dstKind": 2},
            {**span, "bytes": 8, "copyKind": 8, "srcKind": 2, "dstKind": 2, "start": 11},
        ],
        CUPTI_ACTIVITY_KIND_MEMSET=[{**span, "bytes": 4, "memKind": 2, "start": 12}],
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION=[{**span, "syncType": 2, "start": 13}],
    )
    found = trace.read(path)
    assert [row[:2] for row in rows(found)[1:]] == [
        ("Memcpy HtoD (Pageable -> Device)", "memcpy"),
        ("Memcpy DtoD (Device -> Device)", "memcpy"),
        ("Memset (Device)", "memset"),
        ("Stream Sync", "sync"),
    ]
    assert column(found, "bytes", Kind.MEMCPY, Kind.MEMSET) == [64, 8, 4]


def test_how_kernels_were_launched(tmp_path: Path) -> None:
    sizes = {"gridX": 5, "gridY": 2, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1}
    told = {"registersPerThread": 40, "staticSharedMemory": 16, "dynamicSharedMemory": 1024}
    path = export(
        tmp_path / "r.sqlite",
        StringIds=NAMES,
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(2, 10, 20, 1, **sizes, **told)],
    )
    launched = trace.read(path).launch_configurations
    assert launched.grid.tolist() == [[5, 2, 1]]
    assert launched.block.tolist() == [[128, 1, 1]]
    assert (launched.registers.tolist(), launched.shared_memory.tolist()) == ([40], [1040])


def test_a_graph_that_was_traced_as_a_whole_is_work(tmp_path: Path) -> None:
    span = {"start": 10, "end": 30, "globalPid": PROCESS, "deviceId": 0, "streamId": 7}
    graph = {**span, "correlationId": 1, "graphId": 5}
    path = export(
        tmp_path / "r.sqlite",
        StringIds=NAMES,
        CUPTI_ACTIVITY_KIND_RUNTIME=CALLS,
        CUPTI_ACTIVITY_KIND_GRAPH_TRACE=[graph],
    )
    assert ("CUDA graph 5", "kernel", 20) in [
        (name, kind, dur) for name, kind, _, dur in rows(trace.read(path))
    ]


def test_ranges_tell_steps_and_operators(tmp_path: Path) -> None:
    path = export(
        tmp_path / "r.sqlite",
        StringIds=strings("registered"),
        NVTX_EVENTS=[
            nvtx("ProfilerStep#2, op_id = 9", 0, 100),
            nvtx("aten::mm, seq = 7, op_id = 10, sizes = [[2, 3], [3, 4]]", 10, 40),
            nvtx("forward", 5, 50),
            nvtx(None, 60, 70, textId=1),
            nvtx("crossing", 65, 90, kind=60),
            nvtx("open", 80, None),
            nvtx("mark", 85, None, kind=34),
            nvtx("domain", 0, None, kind=75),
        ],
    )
    found = trace.read(path)
    assert [row[:2] for row in rows(found)] == [
        ("ProfilerStep#2", "annotation"),
        ("forward", "annotation"),
        ("aten::mm", "operator"),
        ("registered", "annotation"),
        ("crossing", "annotation"),
    ]
    assert column(found, "sequence", Kind.OPERATOR) == [7]
    assert found.events.lane[4] != found.events.lane[3]
    assert [found.names[code] for code in found.instants.name] == ["mark"]
    assert [(v.code, v.count) for v in found.violations] == [("unmatched_begin_end", 1)]
    steps = find_steps(found, join_launches(found))
    assert steps is not None
    assert steps.numbers == (2,)


def test_rows_without_an_end_are_left_out_and_counted(tmp_path: Path) -> None:
    path = export(
        tmp_path / "r.sqlite",
        StringIds=NAMES,
        CUPTI_ACTIVITY_KIND_KERNEL=[*KERNELS, kernel(2, 300, None, 3)],  # type: ignore[arg-type]
    )
    found = trace.read(path)
    assert len(found.events) == 2
    assert [(v.code, v.count) for v in found.violations] == [("negative_duration", 1)]


@pytest.mark.parametrize(
    ("tables", "meaning"),
    [
        ({"StringIds": NAMES}, "an Nsight Systems export without CUDA calls"),
        ({"rocpd_op": [{"id": 1}]}, "a rocpd database of ROCm"),
        ({"CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL": [{"id": 1}]}, "a database of nvprof"),
        ({"people": [{"id": 1}]}, r"something else \(its tables: people\)"),
    ],
)
def test_other_databases_are_named(
    tmp_path: Path, tables: dict[str, list[dict[str, object]]], meaning: str
) -> None:
    with pytest.raises(TraceError, match=meaning):
        trace.read(export(tmp_path / "r.sqlite", **tables))


def test_a_compressed_export_and_one_given_as_bytes(report: Path) -> None:
    expected = rows(trace.read(report))
    assert rows(trace.read(report.read_bytes())) == expected
    assert rows(trace.read(gzip.compress(report.read_bytes()))) == expected


def test_a_cut_export_says_so(report: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(report.read_bytes()[:5000])
    with pytest.raises(TraceError, match=r"cut\.sqlite cannot be read as a database"):
        trace.read(cut)


def test_nothing_in_a_database_can_act(tmp_path: Path) -> None:
    # A view under a known name would run its own query, here without an end; a computed column
    # would call functions, here for a gigabyte of zeros. Neither is looked at.
    path = export(tmp_path / "r.sqlite", StringIds=NAMES, CUPTI_ACTIVITY_KIND_KERNEL=KERNELS)
    database = sqlite3.connect(path)
    database.execute(
        "CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1"
        " FROM n) SELECT start, start AS end, 59 AS eventType, 'x' AS text FROM n"
    )
    database.execute(
        "CREATE TABLE OSRT_API (start, end AS (length(zeroblob(start))), globalTid, nameId)"
    )
    database.execute("INSERT INTO OSRT_API VALUES (1000000000, 1, 1)")
    database.commit()
    database.close()
    before = path.read_bytes()
    assert len(trace.read(path).events) == len(KERNELS)
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["r.sqlite"]


def test_a_query_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    many = [call(1, number, number + 1, number) for number in range(60_000)]
    path = export(tmp_path / "r.sqlite", StringIds=NAMES, CUPTI_ACTIVITY_KIND_RUNTIME=many)
    source, head = open_source(path, 1 << 30)
    with (
        source,
        pytest.raises(TraceError, match="longer than the time limit"),
        sqlite.open_tables(content_of(source, head, path), time_limit_s=0) as tables,
    ):
        list(tables.select("CUPTI_ACTIVITY_KIND_RUNTIME", ["start"]))


@pytest.mark.traces
def test_the_export_of_a_real_report(traces_root: Path) -> None:
    path = traces_root / "NVIDIA__Fuser/report1.sqlite"
    found = trace.read(path)
    database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    for kind, table, where in (
        (Kind.KERNEL, "CUPTI_ACTIVITY_KIND_KERNEL", ""),
        (Kind.MEMCPY, "CUPTI_ACTIVITY_KIND_MEMCPY", ""),
        (Kind.MEMSET, "CUPTI_ACTIVITY_KIND_MEMSET", ""),
        (Kind.SYNC, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", ""),
        (Kind.RUNTIME, "CUPTI_ACTIVITY_KIND_RUNTIME", "WHERE eventClass = 0"),
        (Kind.DRIVER, "CUPTI_ACTIVITY_KIND_RUNTIME", "WHERE eventClass = 1"),
        (Kind.ANNOTATION, "NVTX_EVENTS", "WHERE end IS NOT NULL"),
        (Kind.OVERHEAD, "PROFILER_OVERHEAD", ""),
    ):
        query = f"SELECT count(*), sum(end - start) FROM {table} {where}"
        counted = database.execute(query).fetchone()
        durations = column(found, "dur", kind)
        assert (len(durations), sum(durations)) == counted, table
    database.close()
    joined = join_launches(found).launch[found.events.rows(*DEVICE_WORK)]
    assert (joined >= 0).all()
    assert found.devices[0].name == "NVIDIA H200"


@pytest.mark.traces
def test_a_database_of_something_else_is_named(traces_root: Path) -> None:
    with pytest.raises(TraceError, match=r"its tables: test\)"):
        trace.read(traces_root / "hpcgroup__pipit/docs__examples__test.sqlite")
