"""Runs with several numbers of ranks: efficiency, where the loss goes, and a prediction."""

from types import SimpleNamespace
from typing import cast

import pytest

import workbench as wb
from tests.analysis.jobs import write_job
from workbench.errors import RunError
from workbench.run.run import Run
from workbench.run.scaling import scaling

STEP, READY, TRANSFER = 1000, 100, 100


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Jobs of 1, 2 and 4 ranks that compute 400 µs; the last of several needs 50 more.

    An all-reduce follows of 100 µs; then nothing happens until the step of 1000 µs is over.
    """
    made = []
    for ranks in (1, 2, 4):
        folder = tmp_path_factory.mktemp(f"job{ranks}")
        compute = [400.0] * (ranks - 1) + [450.0 if ranks > 1 else 400.0]
        made.append(wb.open(write_job(folder, compute, communicates=ranks > 1)))
    return made


def test_a_size_loses_what_it_transfers_and_waits(runs: list[Run]) -> None:
    """A step takes 1000 µs in all of them: what one rank alone does, each rank does as fast.

    Transfer is 100 of 1000 µs. Of two ranks one waits 50 µs, of four three do: 25 and 37.5 µs in
    the mean. The first window begins with the first compute, so shares are of a little less.
    """
    found = scaling(runs)
    table = found.table.set_index("ranks")
    assert table["predicted"].tolist() == [False] * 3 + [True] * 3
    assert table.index.tolist() == [1, 2, 4, 8, 16, 32]
    assert table["exposed"][2] == pytest.approx(0.1, rel=0.2)
    assert table["wait"][2] == pytest.approx(0.025, rel=0.2)
    assert table["wait"][4] == pytest.approx(0.0375, rel=0.2)
    parts = table[["efficiency", "exposed", "wait", "slower"]].sum(axis=1)
    assert parts.tolist() == pytest.approx([1.0] * 6)


def test_the_figure_says_what_it_is_worth_and_marks_predictions(runs: list[Run]) -> None:
    chart = scaling(runs, predict=(64,)).figure
    assert "4 ranks do the work of" in chart.title
    assert "faint: predicted; 64 ranks" in chart.subtitle
    assert "predicted to within" in chart.subtitle
    bars = [trace for trace in chart.figure.data if trace.type == "bar"]
    assert [bar.x for bar in bars] == [("1", "2", "4", "64")] * 4
    assert bars[0].marker.opacity[-1] < bars[0].marker.opacity[0] == 1
    assert any(shape.y0 == 100 for shape in chart.figure.layout.shapes), "the ideal line"
    assert chart.table is not None
    assert len(chart.table.rows) == 4


def test_two_sizes_predict_with_an_error_that_nobody_knows(runs: list[Run]) -> None:
    text = repr(scaling(runs[:2], predict=(8,)))
    assert "an error that nobody knows" in text
    assert "link:" in text


def test_one_size_and_odd_predictions_are_refused(runs: list[Run]) -> None:
    with pytest.raises(RunError, match="two numbers of ranks"):
        scaling(runs[:1])
    with pytest.raises(RunError, match="whole numbers"):
        scaling(runs, predict=(0,))


def test_samples_that_only_some_runs_tell_are_refused(runs: list[Run]) -> None:
    """64 samples beside a guess of one a rank would be an efficiency that nobody measured."""
    told = cast("Run", SimpleNamespace(name="told", record=SimpleNamespace(samples_per_step=64.0)))
    with pytest.raises(RunError, match=rf"{runs[1].name} does not tell how many samples"):
        scaling([told, runs[1]])
