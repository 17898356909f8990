"""Idle gaps: totals are exact whatever is drawn, and what is not drawn is said."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from workbench.figures.empty import reason_of
from workbench.figures.idle import MOST_MARKS, idle_gaps

CAUSES = ("launch", "input", "unknown")


def _figure(pieces: list[tuple[int, int, int]], **rest: Any) -> go.Figure:
    start, end, cause = (np.array(column) for column in zip(*pieces, strict=True))
    given = {"causes": CAUSES, "device_label": "GPU 0", "window_ns": 1000, **rest}
    return idle_gaps(start, end, cause, **given)


def test_title_says_how_idle_and_what_for():
    figure = _figure([(0, 300, 1), (500, 600, 0)])
    assert figure.layout.title.text == (
        "GPU 0 is idle 40 % of the window; 75 % of that it waits for data"
    )


def test_totals_are_exact_and_longest_first():
    bars = _figure([(0, 300, 1), (500, 600, 0), (700, 800, 0)]).data[0]
    assert list(bars.x) == [300, 200]
    assert list(bars.marker.color) == ["#E69F00", "#BDBDBD"]


def test_pieces_lie_where_they_happened_in_the_window():
    figure = _figure([(5300, 5400, 1)], window_start=5000, window_ns=999)  # so the axis is in ns
    assert list(figure.data[1].x) == [300]
    assert list(figure.data[1].y) == [100]


def test_a_million_pieces_are_bounded_and_the_rest_is_said():
    count = 1_000_000
    start = np.arange(count) * 10
    length = np.ones(count, dtype=np.int64)
    length[:100] = 9
    cause = np.zeros(count, dtype=np.int8)
    figure = idle_gaps(
        start, start + length, cause, causes=CAUSES, device_label="GPU 0", window_ns=10 * count
    )
    assert sum(len(trace.x) for trace in figure.data[1:]) == MOST_MARKS
    assert figure.data[0].x[0] * 1e6 == pytest.approx(length.sum())
    assert "the 600 longest of 1\u2009000\u2009000 pieces" in figure.layout.title.subtitle.text
    assert len(figure.to_json()) < 500_000


def test_a_cause_that_the_trace_cannot_hold_is_not_measured():
    figure = _figure([(0, 10, 0)], by_cause={"launch": 10, "input": None})
    assert figure.layout.title.subtitle.text.endswith("not measured: input")


def test_unknown_is_hatched_and_has_its_own_mark():
    figure = _figure([(0, 10, 2)])
    assert list(figure.data[0].marker.pattern.shape) == ["/"]
    assert figure.data[1].marker.symbol == "x"


def test_no_pieces_is_not_measured():
    nothing = idle_gaps(None, None, None, causes=CAUSES, device_label="GPU 0", window_ns=10)
    assert reason_of(nothing) is not None


def test_a_device_that_always_works_is_never_idle_and_not_unmeasured():
    none = np.empty(0, np.int64)
    figure = idle_gaps(none, none, none, causes=CAUSES, device_label="GPU 0", window_ns=1000)
    assert figure.layout.title.text == "GPU 0 is never idle in the window"
    assert not figure.data


@pytest.mark.parametrize(
    ("doubt", "title"),
    [
        ("times", "Cannot tell how long GPU 0 is idle: this profile fails its own checks"),
        ("causes", "GPU 0 is idle 40 % of the window; why, this trace cannot tell"),
    ],
)
def test_void_numbers_carry_no_verdict(doubt: str, title: str):
    assert _figure([(0, 300, 1), (500, 600, 0)], doubt=doubt).layout.title.text == title
