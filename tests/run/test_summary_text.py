"""``print(run.summary)``: the top numbers in a few lines; the document stays as it is."""

from pathlib import Path

import workbench as wb
from tests.kineto import Kineto
from tests.run.test_open import gpu_trace

MOST_LINES = 25


def test_a_summary_reads_as_a_few_lines(tmp_path: Path) -> None:
    """Three steps of 100 µs; the window of 240 begins at the first kernel: busy 120, input 60."""
    summary = wb.open(gpu_trace().write(tmp_path / "t.json")).summary
    lines = dict(line.split("  ", 1) for line in repr(summary).splitlines())
    told = {name: text.strip() for name, text in lines.items()}
    assert told["steps"] == "3 recorded, median 100 µs"
    assert told["CUDA 0"].startswith("busy 50 %, idle 50 % of 240 µs; idle for input 60.0 µs")
    assert told["kernels"] == "1; most time in ampere_sgemm_128x64, 120 µs"
    assert told["WB101"] == summary["findings"][0]["title"]
    assert told["not measured"].startswith("outliers, ")
    assert summary.to_json()["ranks"][0]["steps"]["count"] == 3


def test_many_ranks_kernels_and_long_names_stay_within_the_lines(tmp_path: Path) -> None:
    for rank in range(9):
        made = gpu_trace()
        made.header["distributedInfo"] = {"rank": rank, "world_size": 9, "backend": "nccl"}
        for number in range(30):
            made.kernel("k" * 3000 + str(number), 1300 + number, 1)
        made.write(tmp_path / f"rank{rank}.json.gz")
    lines = repr(wb.open(tmp_path).summary).splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= 160
    assert [line for line in lines if "and 3 more ranks" in line]


def test_names_from_a_trace_are_escaped(tmp_path: Path) -> None:
    trace = Kineto(gpu=True)
    for number in range(2):
        trace.step(number, 1000 + 100 * number, 100)
        trace.launched(
            "<img src=x>",
            call=(1010 + 100 * number, 4),
            kernel=(1020 + 100 * number, 40),
            correlation=number + 1,
        )
    shown = wb.open(trace.write(tmp_path / "t.json")).summary._repr_mimebundle_()
    assert "<img" not in shown["text/html"]
    assert "&lt;img src=x&gt;" in shown["text/html"]
    assert "<img src=x>" in shown["text/plain"]


def test_a_trace_of_the_processor_alone_says_what_was_not_measured(tmp_path: Path) -> None:
    trace = Kineto(gpu=False)
    trace.op("aten::mm", 1000, 50)
    told = repr(wb.open(trace.write(tmp_path / "t.json")).summary)
    assert "steps         not measured" in told
    assert "input         not measured" in told


def test_one_step_of_a_device_has_no_time_and_that_is_said(tmp_path: Path) -> None:
    """A step lasts from one completion to the next: of a single one nobody knows the time."""
    trace = Kineto(gpu=True)
    trace.step(0, 1000, 100)
    trace.launched("gemm", call=(1010, 4), kernel=(1020, 40), correlation=1)
    run = wb.open(trace.write(tmp_path / "one.json"))
    assert "record at least two" in run.summary.not_measured["step_times"]
    assert not run.figure("steps").measured
    several = wb.open(gpu_trace().write(tmp_path / "t.json"))
    assert "step_times" not in several.summary.not_measured
    assert several.figure("steps").measured
