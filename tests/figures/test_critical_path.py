"""The critical path: a lane whose times are exact, and bars of what may be saved."""

import numpy as np
import plotly.graph_objects as go

from workbench.figures.critical_path import MOST_BARS, MOST_BINS, Saving, critical_path, stretches
from workbench.figures.empty import reason_of

KINDS = ("compute", "input", "unknown")
US = 1_000


def _figure(pieces: list[tuple[int, int]], savings: list[Saving] | None = None) -> go.Figure:
    """Pieces of (length in us, kind), one after the other from 500 us on."""
    length = np.array([each for each, _ in pieces]) * US
    end = 500 * US + np.cumsum(length)
    kind = np.array([code for _, code in pieces])
    return critical_path(end - length, end, kind, kinds=KINDS, savings=savings or [], step=7)


def test_the_title_says_what_decides_and_what_can_be_saved():
    figure = _figure([(300, 0), (700, 1)], [Saving("input", "loader free", 650 * US)])
    assert figure.layout.title.text == (
        "70 % of a step's critical path is input; the largest saving is at most 65 %: loader free"
    )
    assert figure.layout.title.subtitle.text == (
        "step 7, 1.00 ms under the profiler: input 70 %, compute 30 %"
    )


def test_pieces_lie_one_after_the_other_in_the_colours_of_their_kind():
    lane = _figure([(300, 0), (700, 1)]).data[0]
    assert list(lane.base) == [0, 0.3]
    assert list(lane.x) == [0.3, 0.7]
    assert list(lane.marker.color) == ["#0072B2", "#E69F00"]
    assert lane.width[0] > lane.width[1], "idle is a thin band, never drawn as work"


def test_bars_are_longest_first_and_few():
    savings = [Saving(f"family:{i}", f"{i} 2× faster", (i + 1) * 10 * US) for i in range(20)]
    bars = _figure([(1000, 0)], savings).data[1]
    assert len(bars.x) == MOST_BARS
    assert list(bars.x) == sorted(bars.x, reverse=True)


def test_what_saves_next_to_nothing_is_not_drawn():
    figure = _figure([(1000, 0)], [Saving("launch", "launches free", 100)])
    assert len(figure.data) == 1


def test_a_hundred_thousand_pieces_are_bounded_and_take_their_share():
    """Compute and input in turn, 3 and 1 us: every stretch is drawn as compute, 75 % of it."""
    count = 100_000
    length = np.tile([3, 1], count // 2) * US
    end = np.cumsum(length)
    kind = np.tile([0, 1], count // 2)
    parts = stretches(end - length, end, kind, KINDS)
    assert len(parts) <= MOST_BINS
    assert sum(part.end - part.start for part in parts) == length.sum()
    assert {part.kind for part in parts} == {"compute"}
    assert abs(parts[0].share - 0.75) < 0.001


def test_names_from_a_trace_are_not_read_as_markup():
    saving = Saving("family:x", "<b>x</b> 2× faster", 500 * US)
    assert "&lt;b&gt;x" in _figure([(1000, 0)], [saving]).layout.annotations[0].text


def test_no_path_says_why():
    figure = critical_path(None, None, None, kinds=KINDS, reason="nothing was recorded.")
    assert reason_of(figure) == "nothing was recorded."


def test_a_saving_that_the_step_without_the_profiler_caps_is_a_share_of_that_step() -> None:
    """1,000 us under the profiler and 650 without: all of the latter may go, not 65 %."""
    saving = Saving("input", "loader free", 650 * US, 650 * US)
    figure = _figure([(300, 0), (700, 1)], [saving])
    assert "the largest saving is at most 100 %: loader free" in figure.layout.title.text
