"""What a Run answers by replaying its steps, and what the findings may claim by it."""

from pathlib import Path

import pytest

import workbench as wb
from tests.kineto import Kineto
from tests.store.records import record
from workbench.analysis.replay.scenario import without_cause
from workbench.run.facts import gather
from workbench.run.view_tables import tables_of
from workbench.store.record import Timings

US = 1_000


@pytest.fixture
def run(tmp_path: Path) -> wb.Run:
    """Four steps of 500 us: 400 us of loader, then a kernel of 60 us."""
    made = Kineto(gpu=True)
    for number in (1, 2, 3, 4):
        at = 500 * number
        made.step(number, at, 500)
        made.loader(at, 400)
        made.launched("gemm", call=(at + 400, 10), kernel=(at + 412, 60), correlation=number)
    return wb.open(made.write(tmp_path / "trace.json"))


def test_the_largest_saving_comes_first(run: wb.Run) -> None:
    table = run.what_if
    assert table is not None
    first = table.iloc[0]
    assert (first["scenario"], first["what_if"]) == ("input", "loader free")
    assert first["saving_ns_at_most"] == 400 * US
    assert first["step_ns_at_least"] == 100 * US


def test_the_critical_path_sums_to_the_step(run: wb.Run) -> None:
    path = run.critical_path
    assert path is not None
    assert path["length_ns"].sum() == 500 * US
    assert path.groupby("kind")["length_ns"].sum()["input"] == 400 * US
    assert path.loc[path["kind"] == "compute", "name"].tolist() == ["gemm"]


def test_a_question_of_ones_own(run: wb.Run) -> None:
    found = run.ranks[0].replayed.what_if(without_cause("input"))
    assert found is not None
    assert found.saving_ns == 400 * US


def test_rules_are_told_the_bounds(run: wb.Run) -> None:
    facts = gather(run.ranks[0], run.record)
    assert facts.bounds_ns is not None
    assert facts.bounds_ns["input"] == 400 * US
    assert facts.bounds_ns["host_python"] is None, "no stacks were recorded"


def test_the_document_and_the_page_tell_it(run: wb.Run) -> None:
    document = run.summary["ranks"][0]
    assert document["critical_path"]["step_us"] == 500
    assert sum(document["critical_path"]["parts_us"].values()) == 500
    assert document["what_if"][0] == {
        "scenario": "input",
        "step_us_at_least": 100,
        "saving_us_at_most": 400,
        "capped": False,
    }
    assert "What a step could save at most" in repr(run.part("details"))
    assert "loader free" in run._repr_mimebundle_()["text/html"]


def test_the_chart_has_a_table_and_words(run: wb.Run) -> None:
    chart = run.figure("critical_path")
    assert chart.table is not None
    assert chart.table.rows[0][0] == "input"
    assert chart.alt.startswith("80 % of a step's critical path is input")


def test_without_steps_the_reason_is_said(tmp_path: Path) -> None:
    made = Kineto(gpu=True)
    made.launched("k", call=(0, 5), kernel=(10, 20), correlation=1)
    run = wb.open(made.write(tmp_path / "trace.json"))
    assert run.what_if is None
    assert run.critical_path is None
    assert run.summary.not_measured["what_if"] == "the trace marks no complete training step"
    assert run.summary["ranks"][0]["what_if"] is None
    assert run.figure("critical_path").table is None


def test_a_trace_that_fails_its_checks_gives_no_number(tmp_path: Path) -> None:
    """Half of the kernels have no launch record."""
    made = Kineto(gpu=True)
    for number in (1, 2, 3):
        at = 500 * number
        made.step(number, at, 500)
        made.launched("gemm", call=(at + 400, 10), kernel=(at + 412, 60), correlation=number)
        made.kernel("gemm", at + 480, 60)
    run = wb.open(made.write(tmp_path / "trace.json"))
    assert run.what_if is None
    assert "cannot tell" in run.summary.not_measured["what_if"]
    assert gather(run.ranks[0], run.record).bounds_ns is None


def test_a_measured_ceiling_stands_before_the_replayed_one(run: wb.Run) -> None:
    """Steps of record take 450 us, on batches at hand 80 each: 370 go; the replay says 400 of 500.

    Under the profiler a step takes 100 us at least, which is more than what was measured.
    """
    timings = Timings(
        step_ns=[450 * US] * 20,
        input_ns=[370 * US] * 20,
        warmup=0,
        blocks=[10, 10],
        profiled_step_ns=[],
        replay_ns=[80 * US] * 6,
    )
    run.record = record(timings=timings)
    table = next(each for each in tables_of(run) if each.caption.startswith("What a step"))
    assert "under the profiler" in table.caption
    first, second = table.rows[:2]
    assert first[:3] == ("loader free, measured without the profiler", 80 * US, 370 * US)
    assert second[0] == "loader free, replayed"


def test_without_a_measured_ceiling_there_is_one_row_for_the_loader(run: wb.Run) -> None:
    table = next(each for each in tables_of(run) if each.caption.startswith("What a step"))
    assert [row[0] for row in table.rows if "loader" in str(row[0])] == ["loader free"]


@pytest.mark.parametrize(("capped", "told"), [([False, False], False), ([True, False], True)])
def test_a_limit_is_told_only_of_what_is_limited(capped: list[bool], told: bool) -> None:
    """A column of nothing but "no" would tell nobody anything."""
    import pandas as pd

    from workbench.pages.replay import what_if_table

    frame = pd.DataFrame(
        {
            "scenario": ["input", "host_other"],
            "what_if": ["loader free", "other host code free"],
            "step_ns_at_least": [100_000.0, 400_000.0],
            "saving_ns_at_most": [400_000.0, 100_000.0],
            "capped": capped,
        }
    )
    table = what_if_table(frame)
    assert ("limited by" in [column.name for column in table.columns]) is told
    if told:
        assert [row[-1] for row in table.rows] == ["the step without the profiler", ""]
