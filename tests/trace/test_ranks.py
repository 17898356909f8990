"""Folders with one file per rank."""

import json
from pathlib import Path

import pytest

from tests.kineto import Kineto
from workbench import trace
from workbench.errors import TraceError
from workbench.trace.header import rank_in_name


def write(path: Path, rank: int | None = None, world: int | None = None) -> None:
    made = Kineto()
    made.op("a", 1, 1)
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
    assert [file.rank for file in files] == [0, 0, 3, None]
    told = {violation.code: violation for violation in files.violations}
    assert set(told) == {"duplicate_ranks", "missing_ranks", "unknown_ranks"}
    assert "copy.json, rank0.json" in told["duplicate_ranks"].message
    assert (told["missing_ranks"].count, told["missing_ranks"].share) == (2, 0.5)
    assert "1, 2" in told["missing_ranks"].message
    assert "which.json" in told["unknown_ranks"].message


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
