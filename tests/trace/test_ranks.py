"""Folders with one file per rank."""

import gzip
import json
from pathlib import Path

import pytest

from tests.kineto import Kineto
from tests.trace.formats.nsight_export import export, nvtx
from tests.trace.formats.xspace import chunk
from workbench import trace
from workbench.errors import TraceError
from workbench.trace.header import rank_in_name


def write(path: Path, rank: int | None = None, world: int | None = None, ts: float = 1) -> None:
    made = Kineto()
    made.op("a", ts, 1)
    if rank is not None:
        made.header["distributedInfo"] = {"rank": rank, "world_size": world}
    made.write(path)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 0),
        ("bs_32_rank0.json.gz", 0),
        ("graph_capture_rank_0.1773709679453551615.pt.trace.json.gz", 0),
        ("Baseline_-_12-11_-_220ff-rank6-chrome-trace.json.gz", 6),
        ("trace_rank7.json", 7),
        ("Rank 12.json", 12),
        ("resnet50_num_workers_4__worker0.pt.trace.json.gz", 0),
        ("1726-TP-3.trace.json.gz", 3),
        ("resnet50_num_workers_4.json", None),
        ("frank2.json", None),
        ("rank_non_gpu.json.gz", None),
        ("host_1234.1698107929560561434.pt.trace.json.gz", None),
    ],
)
def test_ranks_in_file_names(name: str, rank: int | None) -> None:
    assert rank_in_name(name) == rank


def test_the_header_counts_before_the_name(tmp_path: Path) -> None:
    write(tmp_path / "rank0.json", rank=1, world=2)
    write(tmp_path / "other.json.gz", rank=0, world=2)
    files = trace.find_ranks(tmp_path)
    assert [(file.rank, file.path.name) for file in files] == [
        (0, "other.json.gz"),
        (1, "rank0.json"),
    ]
    assert files.violations == ()
    assert trace.read(tmp_path / "rank0.json").world_size == 2


def test_duplicates_gaps_and_unknown_ranks_are_data(tmp_path: Path) -> None:
    write(tmp_path / "rank0.json", rank=0, world=4)
    write(tmp_path / "copy.json", rank=0, world=4)
    write(tmp_path / "rank3.json", rank=3, world=4)
    write(tmp_path / "which.json")
    files = trace.find_ranks(str(tmp_path))
    assert [file.rank for file in files] == [0, 3, None], "the first one stands for the rank"
    assert [file.path.name for file in files.left_out] == ["rank0.json"]
    told = {violation.code: violation for violation in files.violations}
    assert set(told) == {"duplicate_ranks", "missing_ranks", "unknown_ranks"}
    assert "copy.json, rank0.json" in told["duplicate_ranks"].message
    assert (told["missing_ranks"].count, told["missing_ranks"].share) == (2, 0.5)
    assert "1, 2" in told["missing_ranks"].message
    assert "which.json" in told["unknown_ranks"].message


def test_files_of_other_names_that_claim_the_same_ranks_are_other_jobs(tmp_path: Path) -> None:
    """Two ranks of one training, four of another, whose names differ by numbers only."""
    for rank in range(2):
        write(tmp_path / f"resnet_host1_{900 + rank}.json", rank=rank, world=2)
    for rank in range(4):
        write(tmp_path / f"sparse_host1_{70 + rank}.json", rank=rank, world=4)
    files = trace.find_ranks(tmp_path)
    assert [file.path.name for file in files] == [f"sparse_host1_{70 + n}.json" for n in range(4)]
    assert [[file.rank for file in job] for job in files.jobs] == [[0, 1, 2, 3], [0, 1]]
    (told,) = files.violations
    assert (told.code, told.count, told.voids) == ("several_jobs", 2, ())
    assert "sparse_host1_70.json: 4 ranks; resnet_host1_900.json: 2 ranks" in told.message
    assert [job.violations for job in files.jobs] == [(), ()]


def test_two_recordings_that_names_do_not_tell_apart_are_one_job(tmp_path: Path) -> None:
    """Two of each rank under names of one form: no name says which belong together."""
    for number in range(4):
        write(tmp_path / f"host_{number}.json", rank=number % 2, world=2, ts=number)
    files = trace.find_ranks(tmp_path)
    assert [file.path.name for file in files] == ["host_0.json", "host_1.json"]
    assert not files.others
    assert [told.code for told in files.violations] == ["duplicate_ranks"]


def test_a_rank_packed_and_unpacked_is_no_other_job(tmp_path: Path) -> None:
    for rank in range(2):
        write(tmp_path / f"rank{rank}.json", rank=rank, world=2)
        write(tmp_path / f"rank{rank}.json.gz", rank=rank, world=2)
    files = trace.find_ranks(tmp_path)
    assert [file.rank for file in files] == [0, 1]
    assert [told.code for told in files.violations] == ["duplicate_ranks"]


def test_a_single_trace_without_rank_is_fine(tmp_path: Path) -> None:
    write(tmp_path / "trace.json")
    files = trace.find_ranks(tmp_path)
    assert [file.rank for file in files] == [None]
    assert files.violations == ()


def test_files_that_are_no_traces_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "rank0.json")
    (tmp_path / "run.json").write_text(json.dumps({"schema": 1}))
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "folder.json").mkdir()
    assert len(trace.find_ranks(tmp_path)) == 1


@pytest.mark.parametrize("files", [[], ["notes.txt", "config.json"]])
def test_a_folder_without_traces_says_what_is_there(tmp_path: Path, files: list[str]) -> None:
    for name in files:
        (tmp_path / name).write_text("{}")
    with pytest.raises(TraceError, match=r"rank0\.trace\.json\.gz") as error:
        trace.find_ranks(tmp_path)
    assert ("config.json, notes.txt" if files else "nothing") in str(error.value)


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        trace.find_ranks(tmp_path / "missing")


LANES = "lane,kind,name,start_us,duration_us\nmain,operator,a,0,1\n"


def test_ranks_of_every_format_are_found(tmp_path: Path) -> None:
    """Two XLA profiles with the Chrome JSON of the first, a database, rocprofv3, and a CSV."""
    plane = chunk(1, chunk(2, "/host:CPU"))
    (tmp_path / "rank0.xplane.pb").write_bytes(plane)
    write(tmp_path / "rank0.trace.json.gz")
    (tmp_path / "rank1.xplane.pb").write_bytes(plane)
    export(tmp_path / "rank2.sqlite", NVTX_EVENTS=[nvtx("step", 0, 5)])
    export(tmp_path / "experiments.sqlite", metrics=[{"a": 1}])
    (tmp_path / "rank3_results.json").write_text('{"rocprofiler-sdk-tool": []}')
    (tmp_path / "rank4.csv").write_text(LANES)
    (tmp_path / "losses.csv").write_text("step,loss\n1,2\n")
    (tmp_path / "model.pb").write_bytes(b"\x0a\x03\x01\x02\x03")
    (tmp_path / "empty.xplane.pb").write_bytes(b"")
    files = trace.find_ranks(tmp_path)
    assert [(file.rank, file.path.name) for file in files] == [
        (0, "rank0.xplane.pb"),
        (1, "rank1.xplane.pb"),
        (2, "rank2.sqlite"),
        (3, "rank3_results.json"),
        (4, "rank4.csv"),
    ]
    assert files.violations == ()


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (["trace_0.json", "trace_1.json", "trace_2.json"], [0, 1, 2]),
        (["node3_gpu_01.json", "node3_gpu_00.json"], [0, 1]),
        # No rank 0, two numbers that differ, two patterns, one file: nothing says a rank.
        (["trace_1.json", "trace_2.json"], [None, None]),
        (["node0_0.json", "node1_1.json"], [None, None]),
        (["trace_0.json", "other_1.json"], [None, None]),
        (["trace_0.json"], [None]),
    ],
)
def test_numbers_by_which_alone_the_names_differ(
    tmp_path: Path, names: list[str], ranks: list[int | None]
) -> None:
    for name in names:
        write(tmp_path / name)
    assert [file.rank for file in trace.find_ranks(tmp_path)] == ranks


def test_a_rank_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    write(tmp_path / "rank0.json", rank=0, world=3)
    write(tmp_path / "rank1.json", rank=1, world=3)
    (tmp_path / "rank2.json").write_text("")
    (tmp_path / "rank3.json").write_text("<html>")
    (tmp_path / "rank4.json.gz.tmp").write_text("half written")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "rank5.json").symlink_to("nowhere")
    files = trace.find_ranks(tmp_path)
    assert [file.rank for file in files] == [0, 1]
    told = {violation.code: violation for violation in files.violations}
    assert set(told) == {"missing_ranks", "unreadable_ranks"}
    assert told["unreadable_ranks"].count == 2
    assert "rank2.json is empty" in told["unreadable_ranks"].message
    assert "and 1 more" in told["unreadable_ranks"].message


@pytest.mark.parametrize("text", ["[", "[]", '{"traceEvents": [', '{"traceEvents": []}\n'])
def test_a_rank_whose_file_holds_no_event_is_named_and_the_others_are_read(
    tmp_path: Path, text: str
) -> None:
    """What a profiler leaves that was stopped before its first event."""
    for rank in (0, 2):
        made = Kineto()
        made.op("aten::mm", 0, 10)
        made.write(tmp_path / f"rank{rank}.json")
    (tmp_path / "rank1.json").write_text(text)
    found = trace.find_ranks(tmp_path)
    assert [file.rank for file in found] == [0, 2]
    told = {violation.code: violation.message for violation in found.violations}
    assert "rank1.json holds no events" in told["unreadable_ranks"]
    assert "missing_ranks" in told


def test_a_trace_whose_name_tells_a_rank_is_found_under_any_ending(tmp_path: Path) -> None:
    """A log of the same rank beside it is no trace, and nothing is said of it."""
    for name in ("rank0.trace", "rank1.json", "rank2.json.bak"):
        write(tmp_path / name)
    (tmp_path / "rank0.log").write_text("epoch 1\n")
    (tmp_path / "rank3").mkdir()
    found = trace.find_ranks(tmp_path)
    assert [(file.path.name, file.rank) for file in found] == [
        ("rank0.trace", 0),
        ("rank1.json", 1),
        ("rank2.json.bak", 2),
    ]
    assert not found.violations


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
@pytest.mark.parametrize("events", [2, 12_000])
def test_a_header_behind_the_events_tells_the_rank_too(
    tmp_path: Path, ending: str, events: int
) -> None:
    # 12,000 events are 1.2 MB: more than what is read of the beginning.
    one = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "dur": 1}
    args = {"args": {"distributedInfo": {"rank": 7}}}
    for name, rank in (("a", 2), ("b", 0), ("rank0", 1)):
        document = {
            "traceEvents": [{**one, "ts": at, **args} for at in range(events)],
            "distributedInfo": {"rank": rank, "world_size": 3},
            "traceName": '"distributedInfo": {"rank": 5}',
        }
        text = json.dumps(document).encode()
        (tmp_path / f"{name}{ending}").write_bytes(
            gzip.compress(text, 1) if ending.endswith("gz") else text
        )
    for _ in range(2):  # the second time from the cache, where there is one
        files = trace.find_ranks(tmp_path)
        told = [(file.rank, file.world_size, file.path.name.partition(".")[0]) for file in files]
        assert told == [(0, 3, "b"), (1, 3, "rank0"), (2, 3, "a")]
        assert files.violations == ()
        trace.open_trace(files[0].path)


def test_a_rank_in_the_arguments_of_the_last_event_is_not_the_rank_of_the_file(
    tmp_path: Path,
) -> None:
    event = {"ph": "X", "ts": 1, "name": "a", "args": {"distributedInfo": {"rank": 7}}}
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"traceEvents": [event]}))
    assert [file.rank for file in trace.find_ranks(tmp_path)] == [None, None]
