"""Subjects that a page folds away: charts and tables where measured, nothing otherwise."""

from pathlib import Path

import pytest

import workbench as wb
from tests.kineto import Kineto
from tests.run.test_open import gpu_trace
from workbench.errors import RunError
from workbench.run.more import TITLES


def test_every_subject_of_a_gpu_trace_has_charts_and_words(tmp_path: Path) -> None:
    run = wb.open(gpu_trace().write(tmp_path / "t.json"))
    for subject in ("breakdowns", "steps", "launches", "phases"):
        more = run.more(subject)
        assert more, subject
        shown = more._repr_mimebundle_()
        assert f"<summary>{TITLES[subject]}</summary>" in shown["text/html"]
        assert TITLES[subject] in shown["text/plain"]


def test_what_was_not_measured_shows_nothing(tmp_path: Path) -> None:
    """No copies, no other rank."""
    run = wb.open(gpu_trace().write(tmp_path / "t.json"))
    for subject in ("copies", "ranks"):
        assert not run.more(subject)
        assert "<details" not in run.more(subject)._repr_mimebundle_()["text/html"]


def test_an_unknown_subject_lists_the_known_ones(tmp_path: Path) -> None:
    run = wb.open(gpu_trace().write(tmp_path / "t.json"))
    with pytest.raises(RunError, match="there are breakdowns, gaps, loader, steps"):
        run.more("everything")  # type: ignore[arg-type]


def test_every_answer_beyond_the_first_look_is_a_table_or_has_a_reason(tmp_path: Path) -> None:
    trace = Kineto()
    trace.op("aten::mm", 10, 5)
    run = wb.open(trace.write(tmp_path / "cpu.json"))
    for name in ("outliers", "launches", "copies", "modules", "operator_shapes"):
        assert getattr(run, name) is None
        assert run.summary.not_measured[name]
    assert run.phases is not None


def test_tables_of_a_gpu_trace_hold_what_they_say(tmp_path: Path) -> None:
    """Three steps of one launch; completions at 1090, 1190, 1290 give steps of 40, 100, 100 us."""
    run = wb.open(gpu_trace().write(tmp_path / "t.json"))
    assert run.launches is not None
    assert run.launches["per_step"].tolist() == [1.0, 1.0]
    assert run.step_parts is not None
    assert run.step_parts["time_ns"].tolist() == [40_000, 100_000, 100_000]
    assert run.step_parts["input"].tolist() == [0, 30_000, 30_000]
    document = run.summary["ranks"][0]
    assert [step["time_us"] for step in document["step_parts"]] == [40, 100, 100]
    assert document["launch_queue"][0]["short_calls"] == 0
    assert document["phases"][0]["phase"] == "input"


def test_ranks_and_steps_are_a_map(tmp_path: Path) -> None:
    from tests.run.test_several_ranks import write_job

    run = wb.open(write_job(tmp_path, (400, 600)))
    figure = run.figure("rank_steps")
    assert figure.table is not None
    assert [row[0] for row in figure.table.rows] == ["Rank 0", "Rank 1"]
    assert run.more("ranks")
