"""Where a step goes: the title says the finding, the bars add up."""

import numpy as np
import plotly.graph_objects as go
import pytest

from workbench.figures.breakdown import breakdown
from workbench.figures.empty import reason_of
from workbench.units import share_text, time_text

MS = 1_000_000
DEVICE = {
    "compute": 50 * MS,
    "exposed_communication_wait": None,
    "exposed_communication_transfer": 5 * MS,
    "exposed_memory": 5 * MS,
    "input": 30 * MS,
    "launch": 9 * MS,
    "kernel_gap": 500_000,
    "profiler": 300_000,
    "unknown": 200_000,
    "host_python": None,
}
CPU = {
    "input": 39 * MS,
    "communication": 0,
    "optimizer": 6 * MS,
    "backward": 31 * MS,
    "forward": 20 * MS,
    "other_operators": 1 * MS,
    "host_python": 0,
    "host_other": 3 * MS,
}


def _rows(figure: go.Figure) -> dict[str, str]:
    """What stands above each bar: its name at the left edge, its value at the right one."""
    left, right = figure.layout.annotations[::2], figure.layout.annotations[1::2]
    assert {(note.x, note.xref, note.xanchor) for note in left} == {(0, "paper", "left")}
    assert {(note.x, note.xref, note.xanchor) for note in right} == {(1, "paper", "right")}
    assert [note.y for note in left] == [note.y for note in right]
    return {name.text: value.text for name, value in zip(left, right, strict=True)}


def test_title_names_the_share_of_waiting_and_its_cause():
    figure = breakdown(DEVICE, total_ns=100 * MS, device_label="GPU 0", steps=10)
    assert figure.layout.title.text == "GPU 0 waits 40 % of the step, mostly for data"


def test_busy_device_says_what_takes_most_beside_compute():
    parts = {"compute": 80 * MS, "exposed_communication_transfer": 15 * MS, "launch": 5 * MS}
    figure = breakdown(parts, total_ns=100 * MS, device_label="GPU 0")
    assert figure.layout.title.text == (
        "GPU 0 computes 80 % of the window; communication (transfer) takes 15 %"
    )


def test_cpu_names_its_two_largest_parts():
    figure = breakdown(CPU, total_ns=100 * MS, device_label="CPU")
    title = figure.layout.title.text
    assert title == "39 % of the window goes to waiting for data, 31 % to backward"


def test_both_rows_of_bars_add_up_to_the_step():
    bar = breakdown(DEVICE, total_ns=100 * MS, device_label="GPU 0", steps=10).data[0]
    lengths, rows = np.array(bar.x), np.array(bar.y)
    assert lengths[rows == 0].sum() == pytest.approx(10.0)
    assert lengths[rows > 0].sum() == pytest.approx(10.0)


def test_parts_lie_end_to_end():
    bar = breakdown(DEVICE, total_ns=100 * MS, device_label="GPU 0").data[0]
    stacked = np.array(bar.y) == 0
    start, end = np.array(bar.base)[stacked], (np.array(bar.base) + np.array(bar.x))[stacked]
    assert start[0] == 0
    assert start[1:] == pytest.approx(end[:-1])


def test_idle_is_a_thin_band_and_work_is_not():
    bar = breakdown(DEVICE, total_ns=100 * MS, device_label="GPU 0").data[0]
    width = dict(zip(bar.marker.color, bar.width, strict=True))
    assert width["#E69F00"] < width["#0072B2"] / 2


def test_waiting_on_the_cpu_is_the_threads_own_time_and_no_thin_band():
    bar = breakdown(CPU, total_ns=100 * MS, device_label="CPU").data[0]
    assert len(set(bar.width)) == 1


@pytest.mark.parametrize("compute", [92, 50, 8])
def test_words_stand_above_their_bar_at_the_edges_however_long_it_is(compute: int):
    """Beside a long bar a narrow page would cut them; row 0 is the stacked bar, without words."""
    parts = {"compute": compute, "launch": 100 - compute}
    figure = breakdown(parts, total_ns=100, device_label="GPU 0")
    assert _rows(figure) == {
        "compute": f"<b>{share_text(compute / 100)}</b>  {time_text(compute)}",
        "launch": f"<b>{share_text(1 - compute / 100)}</b>  {time_text(100 - compute)}",
    }
    bar = figure.data[0]
    for note in figure.layout.annotations:
        row = round(note.y + 0.17)
        thickest = max(w for w, y in zip(bar.width, bar.y, strict=True) if y == row)
        assert note.y <= row - thickest / 2 + 1e-9


def test_times_are_per_step_and_the_axis_says_so():
    figure = breakdown(CPU, total_ns=100 * MS, device_label="CPU", steps=10)
    assert figure.layout.xaxis.title.text == "mean time per step (ms)"
    assert _rows(figure)["input"] == "<b>39 %</b>  3.90 ms"


@pytest.mark.parametrize(
    ("steps", "of_steps", "said"),
    [
        (None, None, "window of 100 ms"),
        (4, 6, "mean of 4 of 6 steps, 25.0 ms"),
        (1, None, "one step of 100 ms"),
        (1, 2, "1 of 2 steps of 100 ms"),
    ],
)
def test_the_subtitle_says_what_is_broken_down(steps: int | None, of_steps: int | None, said: str):
    figure = breakdown(DEVICE, total_ns=100 * MS, device_label="A", steps=steps, of_steps=of_steps)
    assert figure.layout.title.subtitle.text.startswith(f"{said}, under the profiler")


def test_several_small_causes_share_a_row():
    labels = _rows(breakdown(DEVICE, total_ns=100 * MS, device_label="GPU 0"))
    assert any(label.startswith("2 smaller causes") for label in labels)


def test_what_was_not_measured_is_named_and_not_drawn_as_zero():
    figure = breakdown(DEVICE, total_ns=100 * MS, device_label="GPU 0")
    said = figure.layout.title.subtitle.text
    assert said.endswith("not measured: communication (wait for ranks), host Python")
    assert not any("host Python" in label for label in _rows(figure))


def test_tooltip_is_exact_to_the_nanosecond():
    bar = breakdown({"compute": 1_234_567}, total_ns=1_234_567, device_label="GPU 0").data[0]
    assert "1\u2009234\u2009567 ns" in bar.customdata[0]


def test_parts_beyond_the_window_are_refused():
    with pytest.raises(ValueError, match="more than the window"):
        breakdown({"compute": 11}, total_ns=10, device_label="GPU 0")


@pytest.mark.parametrize("parts", [None, {}, {"compute": None}, {"compute": 0}])
def test_nothing_measured_is_said_and_drawn_as_nothing(parts: dict[str, int | None] | None):
    figure = breakdown(parts, total_ns=10, device_label="GPU 0", reason="record two steps.")
    assert reason_of(figure) == "record two steps."
    assert figure.layout.title.text.endswith("not measured")
    assert not figure.data


def test_device_name_is_foreign_text():
    figure = breakdown({"compute": 10}, total_ns=10, device_label="<b>GPU</b> $x$")
    assert figure.layout.title.text.startswith("&lt;b&gt;GPU&lt;/b&gt; &#36;x&#36;")


@pytest.mark.parametrize(
    ("doubt", "title"),
    [
        ("times", "Cannot tell how busy GPU 0 is: this profile fails its own checks"),
        ("causes", "GPU 0 waits 40 % of the step; for what, this trace cannot tell"),
    ],
)
def test_void_numbers_carry_no_verdict(doubt, title: str):  # noqa: ANN001
    figure = breakdown(DEVICE, total_ns=100 * MS, device_label="GPU 0", steps=10, doubt=doubt)
    assert figure.layout.title.text == title


def test_times_of_a_trace_are_called_profiled():
    figure = breakdown(CPU, total_ns=100 * MS, device_label="CPU", steps=10)
    assert "mean of 10 steps, 10.0 ms, under the profiler" in figure.layout.title.subtitle.text


def test_what_the_profiler_does_to_a_step_stands_beside_its_parts() -> None:
    """A step of 148 ms under the profiler and 100 without it; 2 % more needs no word."""
    for overhead, said in ((1.48, " (1.48 times the median step without it)"), (1.02, "")):
        drawn = breakdown(
            {"compute": 148}, total_ns=148, device_label="GPU 0", steps=1, overhead=overhead
        )
        assert drawn.layout.title.subtitle.text == f"one step of 148 ns, under the profiler{said}"
