"""Single steps, the queue, copies, and ranks step by step."""

import numpy as np
import pandas as pd
import pytest

from workbench.figures import palette
from workbench.figures.copies import copy_bandwidth
from workbench.figures.empty import reason_of
from workbench.figures.families import family_times
from workbench.figures.queue import Line, queue_length
from workbench.figures.rank_steps import rank_steps
from workbench.figures.stacked import MOST_BARS
from workbench.figures.step_parts import step_parts
from workbench.figures.waterfall import waterfall

MS = 1_000_000
PARTS = {"compute": 60 * MS, "exposed_memory": 10 * MS, "input": 30 * MS, "host_python": None}


def test_the_waterfall_climbs_from_compute_to_the_step():
    """60 of compute, then 10 and 30 on top of each other, then the whole of 100."""
    bar = waterfall(PARTS, total_ns=100 * MS, device_label="GPU 0").data[0]
    assert list(bar.base) == [0, 60, 70, 0]
    assert list(bar.x) == [60, 10, 30, 100]


def test_the_waterfall_says_what_adds_most():
    figure = waterfall(PARTS, total_ns=100 * MS, device_label="GPU 0", steps=5)
    assert figure.layout.title.text == (
        "Compute alone would take 60 % of the step of GPU 0; input adds most, 30 %"
    )
    assert "mean of 5 steps, 20.0 ms" in figure.layout.title.subtitle.text


@pytest.mark.parametrize(
    ("doubt", "said"), [("times", "Cannot tell"), ("causes", "of the window of GPU 0")]
)
def test_the_waterfall_claims_nothing_that_the_trace_cannot_tell(doubt: str, said: str):
    title = waterfall(PARTS, total_ns=100 * MS, device_label="GPU 0", doubt=doubt).layout.title.text
    assert said in title
    assert "input" not in title


@pytest.mark.parametrize("parts", [None, {"forward": 10, "backward": 20}])
def test_without_a_device_there_is_no_waterfall(parts: dict[str, int] | None):
    assert reason_of(waterfall(parts, total_ns=30, device_label="CPU", reason="no device."))


def idle_of(count: int) -> dict[str, np.ndarray | None]:
    waits = np.full(count, 20 * MS)
    waits[-1] = 50 * MS
    return {
        "compute": np.full(count, 70 * MS),
        "input": waits,
        "launch": np.full(count, 5 * MS),
        "host_python": None,
    }


def test_bars_of_steps_hold_idle_time_only_largest_first():
    length = np.full(3, 100 * MS)
    figure = step_parts(
        idle_of(3), length_ns=length, numbers=(7, 8, 9), slow=(9,), device_label="GPU 0"
    )
    assert [bar.name for bar in figure.data] == ["input", "launch"]
    assert list(figure.data[0].x) == [7, 8, 9]
    assert list(figure.data[0].y) == [20, 20, 50]
    assert figure.data[0].marker.color == palette.category("input").colour
    assert figure.layout.title.text == (
        "GPU 0 is idle 25.0 ms of a step; longest in step 9, 55.0 ms"
    )


def test_a_far_slower_step_is_marked_by_shape():
    length = np.full(3, 100 * MS)
    figure = step_parts(
        idle_of(3), length_ns=length, numbers=(7, 8, 9), slow=(9,), device_label="GPU 0"
    )
    (mark,) = figure.layout.annotations
    assert (mark.text, mark.x, mark.y) == ("▼", 9, 55)


def test_many_steps_share_bars():
    count = 3 * MOST_BARS
    figure = step_parts(
        idle_of(count),
        length_ns=np.full(count, 100 * MS),
        numbers=tuple(range(count)),
        device_label="GPU 0",
    )
    assert len(figure.data[0].x) == MOST_BARS
    assert "a bar is the mean of 3 steps" in figure.layout.title.subtitle.text


def test_on_the_cpu_bars_hold_all_parts():
    parts = {"forward": np.array([10, 10]), "input": np.array([30, 30]), "communication": None}
    figure = step_parts(parts, length_ns=np.array([40, 40]), numbers=(0, 1), device_label="CPU")
    assert [bar.name for bar in figure.data] == ["input", "forward"]
    assert figure.layout.title.text == "Over the steps, input takes 75 % of the loop"


def test_no_steps_say_so():
    assert reason_of(step_parts(None, length_ns=None, device_label="GPU 0"))


def test_the_queue_is_a_line_of_means():
    line = Line(None, np.array([0.0, 4.0]), np.array([0, 9]))
    figure = queue_length([line], window_ns=10 * MS, empty_share=0.5, mean=2.0)
    assert list(figure.data[0].y) == [0, 4]
    assert list(figure.data[0].x) == [2.5, 7.5]
    assert "Nothing waits" in figure.layout.title.text
    assert "longest queue 9" in figure.layout.title.subtitle.text


def test_no_launches_no_queue():
    assert reason_of(queue_length(()))


def copies() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "kind": ["HtoD", "HtoD", "DtoD"],
            "host_memory": ["pageable", "pinned", None],
            "bytes": [1_000_000, 50_000_000, 1_000],
            "total_ns": [250_000, 2_500_000, 1_000],
            "gb_s": [4.0, 20.0, 1.0],
        }
    )


def test_pageable_copies_are_hollow():
    marks = {trace.name: trace.marker.symbol for trace in copy_bandwidth(copies()).data}
    assert marks == {
        "host to device, pageable": "triangle-right-open",
        "host to device, pinned": "triangle-right",
        "on the device": "circle",
    }


def test_the_title_is_of_the_copies_that_move_most():
    table = pd.DataFrame(
        {"kind": ["HtoD"], "host_memory": ["pinned"], "exposed_ns": [30], "hidden_ns": [70]}
    )
    title = copy_bandwidth(copies(), table).layout.title.text
    assert title == (
        "Copies host to device, pinned reach 20.0 GB/s; other work hides 70 % of their time"
    )


def test_copies_without_a_size_are_not_drawn():
    assert reason_of(copy_bandwidth(copies().iloc[:0]))


def test_the_map_of_ranks_keeps_what_was_not_measured_empty():
    values = np.array([[1.0, 2.0], [np.nan, 9.0]]) * MS
    figure = rank_steps(values, ranks=("Rank 0", "Rank 1"), steps=(5, 6))
    assert [list(row) for row in figure.data[0].z] == [[1, 2], [None, 9]]
    assert figure.layout.title.text == (
        "Rank 0 waits least for the others, 3.00 ms in all; Rank 1 most, 9.00 ms"
    )


def test_one_rank_has_no_map():
    assert reason_of(rank_steps(np.array([[1.0]]), ranks=("Rank 0",), steps=(1,)))


def test_foreign_names_are_never_markup():
    figure = waterfall({"compute": 10}, total_ns=10, device_label="<b>GPU</b>")
    assert "<b>" not in figure.layout.title.text
    figure = rank_steps(np.ones((2, 1)), ranks=("<i>a</i>", "b"), steps=(1,))
    assert "<i>" not in str(figure.data[0].customdata)


def family_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "device": [0, 0],
            "family": ["gemm", "other"],
            "kernels": [2, 1],
            "calls": [10, 5],
            "total_ns": [75 * MS, 25 * MS],
            "share": [0.75, 0.25],
            "tensor_core_share": [1.0, np.nan],
            "occupancy": [0.5, np.nan],
        }
    )


def test_the_share_that_nobody_could_classify_is_said():
    figure = family_times(family_frame())
    assert figure.layout.title.text == "Gemm kernels take 75 % of the device's work"
    assert "not classified: 25 %" in figure.layout.title.subtitle.text


def test_families_without_work_are_not_measured():
    assert reason_of(family_times(None))
