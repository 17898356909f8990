"""The trials of a search: what is drawn of each."""

from typing import Any

import pytest

from workbench.figures.empty import reason_of
from workbench.figures.trials import MOST_ROWS, trial_times

MS = 1e6


def row(setting: str, ms: float | None, **more: Any) -> dict[str, Any]:
    given = {"low_ns": None, "high_ns": None, "kept": False, "reason": "because"}
    return {"setting": setting, "time_ns": None if ms is None else ms * MS, **given, **more}


def test_each_measured_trial_is_a_point_with_its_interval_and_kept_ones_are_filled():
    figure = trial_times(
        [
            row("as it is", 100, kept=True),
            row("workers=2", 60, kept=True, low_ns=55 * MS, high_ns=66 * MS),
            row("channels_last=True", None),
            row("batch 64", 61, low_ns=50 * MS, high_ns=70 * MS),
        ],
        title="workers=2 helps",
    )
    (points,) = figure.data
    assert list(points.x) == [100, 60, 61]  # in ms; what was refused has no point
    assert list(points.error_x.array) == pytest.approx([0, 6, 9])
    assert list(points.error_x.arrayminus) == pytest.approx([0, 5, 11])
    assert list(points.marker.symbol) == ["diamond", "diamond", "circle-open"]
    assert figure.layout.xaxis.title.text == "time of a step (ms)"
    assert "55.0 ms to 66.0 ms" in points.customdata[1]


def test_names_and_values_stand_beside_their_points_from_the_top():
    figure = trial_times([row("as it is", 100), row("workers=2", 60)], title="")
    words = [note.text for note in figure.layout.annotations]
    assert words == ["as it is", "100 ms", "workers=2", "60.0 ms"]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]


def test_a_long_search_is_cut_and_an_empty_one_says_so():
    many = trial_times([row(str(n), 1 + n) for n in range(100)], title="")
    assert len(many.data[0].x) == MOST_ROWS
    assert "larger budget" in (reason_of(trial_times([row("a", None)], title="")) or "")
    assert reason_of(trial_times(None, title=""))
