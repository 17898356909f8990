"""``workbench convert``: new files for viewers, and one clear line where that cannot be."""

from pathlib import Path

import pytest

from tests.cli.test_analyze import workbench
from tests.run.test_open import gpu_trace
from tests.trace.reference import names
from workbench.trace import read

pytestmark = pytest.mark.slow


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Steps 0, 1 and 2, each with one kernel."""
    return gpu_trace().write(tmp_path / "rank0.json.gz")


def test_a_slice_by_steps(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "slice.json.gz"
    done = workbench("convert", trace, out, "--steps", "1:2")
    found = names(read(out))

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{out}: 10 records, ")
    assert [name for name in found if name.startswith("Profiler")] == [
        "ProfilerStep#1",
        "ProfilerStep#2",
    ]
    assert found.count("ampere_sgemm_128x64") == 2


def test_a_slice_by_time_counts_from_the_first_event(trace: Path, tmp_path: Path) -> None:
    """The first step starts at 0; its kernel ends at 90, the second step's begins at 150."""
    workbench("convert", trace, tmp_path / "slice.json", "--range", "95.5:149")

    assert names(read(tmp_path / "slice.json")).count("ampere_sgemm_128x64") == 0
    assert "ProfilerStep#1" in names(read(tmp_path / "slice.json"))


def test_counters_are_added(trace: Path, tmp_path: Path) -> None:
    workbench("convert", trace, tmp_path / "counted.json", "--counters")

    assert set(read(tmp_path / "counted.json").counters.names) == {
        "device 0 busy %",
        "device 0 stream 7 queue",
    }


def test_ranks_are_merged_one_by_one_or_as_a_folder(trace: Path, tmp_path: Path) -> None:
    other = gpu_trace().write(tmp_path / "rank1.json.gz")
    workbench("convert", trace, tmp_path / "all.json", "--merge", other)
    folder = tmp_path / "ranks"
    folder.mkdir()
    for path in (trace, other):
        path.rename(folder / path.name)
    workbench("convert", folder, tmp_path / "folder.json")
    processes = {lane.process for lane in read(tmp_path / "all.json").lanes}

    assert {"rank 0 device 0", "rank 1 device 1"} <= processes
    assert len(read(tmp_path / "folder.json").events) == len(read(tmp_path / "all.json").events)


def test_an_existing_file_stays_unless_force_is_given(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("precious")
    refused = workbench("convert", trace, out)

    assert (refused.returncode, out.read_text()) == (2, "precious")
    assert "--force" in refused.stderr
    assert workbench("convert", trace, out, "--force").returncode == 0
    assert len(read(out).events) == 15


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--steps", "3-5"], "is no range of steps: write 3:5"),
        (["--steps", "5:3"], "write 3:5"),
        (["--steps", "7:9"], "its steps are 0 to 2"),
        (["--range", "abc"], "is no range of time"),
        (["--range", ":"], "is no range of time"),
        (["--range", "9000:9001"], "there is no record"),
        (["--range", "1:2", "--steps", "1"], "not both"),
        (["--merge", "missing.json"], "missing.json does not exist"),
    ],
)
def test_bad_input_is_one_line_and_no_file(
    trace: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    done = workbench("convert", trace, tmp_path / "out.json", *words)

    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out.json").exists()


def test_a_source_that_is_no_trace_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "page.json").write_text("<!DOCTYPE html><html></html>")
    done = workbench("convert", tmp_path / "page.json", tmp_path / "out.json")

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
