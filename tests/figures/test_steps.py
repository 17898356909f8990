"""Step times, waits for data, and two runs side by side."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from workbench.figures.comparison import comparison
from workbench.figures.empty import reason_of
from workbench.figures.input import MOST_BARS, input_waits
from workbench.figures.steps import MOST_POINTS, step_times

MS = 1_000_000


def test_title_is_the_median_of_the_steady_steps():
    figure = step_times([90 * MS, 10 * MS, 11 * MS, 12 * MS], warmup=1)
    assert figure.layout.title.text == "A step takes 11.0 ms (from 10.0 ms to 12.0 ms)"


def test_a_95th_percentile_needs_twenty_steps():
    times = list(range(1 * MS, 21 * MS, MS))
    assert "95 %" not in step_times(times[:19]).layout.title.text
    assert step_times(times).layout.title.text == (
        "A step takes 10.5 ms; 95 % of them at most 19.1 ms"
    )


def test_warmup_is_drawn_in_grey_and_does_not_stretch_the_axis():
    figure = step_times([900 * MS, *[10 * MS] * 9], warmup=1)
    series = figure.data[0]
    assert series.marker.color[0] != series.marker.color[1]
    assert series.marker.symbol[0] == "triangle-up"
    assert figure.layout.yaxis.range[1] < 20
    assert "900 ms" in series.customdata[0]


def test_distribution_counts_every_steady_step_once():
    figure = step_times([50 * MS, *np.linspace(9 * MS, 11 * MS, 100).astype(int)], warmup=1)
    assert sum(figure.data[1].x) == 100


def test_many_steps_are_drawn_as_medians_and_it_is_said():
    figure = step_times(np.full(1_000_000, 10 * MS))
    assert len(figure.data[0].x) <= MOST_POINTS
    assert "medians of 1000 steps" in figure.layout.title.subtitle.text
    assert len(figure.to_json()) < 500_000


def test_axes_name_their_units():
    layout = step_times([10 * MS] * 5).layout
    assert layout.yaxis.title.text == "step time (ms)"
    assert layout.xaxis.title.text == "step"


@pytest.mark.parametrize("steps", [None, [], [5 * MS]])
def test_no_steady_step_is_not_measured(steps: list[int] | None):
    assert reason_of(step_times(steps, warmup=1)) is not None


def test_share_of_waiting_is_of_all_the_time():
    figure = input_waits([10 * MS, 30 * MS], [5 * MS, 5 * MS])
    assert figure.layout.title.text == "Waiting for data takes 25 % of a step: 5.00 ms of 20.0 ms"


def test_wait_and_rest_add_up_to_each_step():
    wait, rest = input_waits([10 * MS, 30 * MS], [4 * MS, 5 * MS]).data
    assert np.add(wait.y, rest.y) == pytest.approx([10, 30])
    assert wait.marker.color == "#E69F00"


def test_warmup_is_left_out_of_the_waits():
    figure = input_waits([900 * MS, 10 * MS], [800 * MS, 1 * MS], warmup=1)
    assert "10 % of a step" in figure.layout.title.text
    assert list(figure.data[0].x) == [1]


def test_many_waits_are_means_of_several_steps():
    figure = input_waits(np.full(10_001, 10 * MS), np.full(10_001, MS))
    assert len(figure.data[0].x) <= MOST_BARS
    assert "a bar is the mean of 51 steps" in figure.layout.title.subtitle.text


@pytest.mark.parametrize("waits", [None, [], [1]])
def test_steps_without_their_waits_are_not_measured(waits: list[int] | None):
    assert reason_of(input_waits([10, 10], waits)) is not None


def _change(verdict: str, ratio: float | None, low: float | None, high: float | None) -> Any:
    return SimpleNamespace(verdict=verdict, ratio=ratio, low=low, high=high, reason=None)


def test_faster_is_said_by_shape_word_and_interval():
    figure = comparison([20 * MS] * 9, [14 * MS] * 9, _change("faster", 0.69, 0.66, 0.72))
    assert figure.layout.title.text == "▲ faster: a step of after takes 31 % (28–34) less time"


def test_a_narrow_interval_keeps_its_two_ends():
    figure = comparison([10 * MS] * 9, [8 * MS] * 9, _change("faster", 0.799, 0.798, 0.801))
    assert "takes 20.1 % (19.9–20.2) less time" in figure.layout.title.text


def test_slower_has_its_own_shape():
    figure = comparison([10 * MS] * 9, [12 * MS] * 9, _change("slower", 1.2, 1.15, 1.25))
    assert figure.layout.title.text == "▼ slower: a step of after takes 20 % (15–25) more time"


def test_cannot_tell_shows_what_it_cannot_exclude():
    figure = comparison([10 * MS] * 9, [10 * MS] * 9, _change("cannot_tell", 1.0, 0.96, 1.05))
    assert figure.layout.title.text == (
        "≈ cannot tell: a step of after takes between 4.0 % less and 5.0 % more time"
    )


def test_no_interval_is_no_verdict():
    figure = comparison([10 * MS], [1 * MS], _change("cannot_tell", None, None, None))
    assert figure.layout.title.text.startswith("≈ cannot tell whether after is faster")


def test_same_data_give_the_same_picture():
    make = [comparison([10, 20, 30], [1, 2, 3], _change("faster", 0.1, 0.1, 0.1)) for _ in "ab"]
    assert make[0].to_json() == make[1].to_json()


def test_a_side_without_steps_is_not_measured():
    assert reason_of(comparison([10], [], _change("faster", 0.1, 0.1, 0.1))) is not None


def test_run_names_are_foreign_text():
    names = ("<a href='x'>a</a>", "b")
    figure = comparison([1], [1], _change("faster", 0.5, 0.4, 0.6), names_of=names)
    assert "<a" not in figure.to_json().replace("\\u003c", "<")


def test_one_step_is_no_median_and_no_range():
    figure = step_times([5_000_000])
    assert figure.layout.title.text == "A step takes 5.00 ms"
    assert figure.layout.title.subtitle.text == "one step, measured without the profiler"


def test_the_names_of_the_layers_stand_apart_when_the_last_step_is_short():
    """The axis reaches 100 ms in 272 pixels or so: names 0.5 ms apart would lie on each other."""
    steps, waits = [100 * MS, 1 * MS], [4 * MS, MS // 10]
    notes = {note.text: note.y for note in input_waits(steps, waits).layout.annotations}
    low = next(y for text, y in notes.items() if "wait for data" in text)
    high = next(y for text, y in notes.items() if "the rest" in text)
    assert high - low >= 0.07 * 100


def test_steps_have_the_numbers_that_the_trace_gives_them():
    figure = step_times([10 * MS, 11 * MS, 10 * MS], numbers=(102, 103, 104))
    assert list(figure.data[0].x) == [102, 103, 104]
    assert figure.data[0].customdata[0].startswith("<b>step 102</b>")


def test_waits_have_the_numbers_that_the_trace_gives_them():
    wait, _ = input_waits([10 * MS] * 3, [5 * MS] * 3, warmup=1, numbers=(7, 8, 9)).data
    assert list(wait.x) == [8, 9]
    assert wait.customdata[0].startswith("<b>step 8</b>")
