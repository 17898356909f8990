"""The stretch of time that holds the whole steps, and nothing launched before them."""

import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.launches import join_launches
from workbench.analysis.ranges import Range
from workbench.analysis.steps import find_steps
from workbench.analysis.window import foreign_share, recording, window


def ranges(made: Kineto, device: int | None = 0) -> tuple[Range | None, Range | None, float | None]:
    """Recording, window and foreign share of a trace."""
    trace = columns(made)
    launches = join_launches(trace)
    steps = find_steps(trace, launches)
    held = window(trace, device, steps, launches)
    share = None if device is None else foreign_share(trace, device, held, steps, launches)
    return recording(trace, device), held, share


def us(start: float, end: float) -> Range:
    return Range(start=round(start * US), end=round(end * US))


def two_steps(made: Kineto) -> None:
    """Steps [100, 200) and [200, 300); each launches a kernel that ends 10 us into the next."""
    for number, ts in ((1, 100), (2, 200)):
        made.step(number, ts, 100)
        made.launched("k", call=(ts + 1, 2), kernel=(ts + 50, 60), correlation=number)


def test_work_launched_before_the_steps_ends_where_the_window_begins() -> None:
    """Ten kernels launched in warm-up land in the recording, not in the window."""
    made = Kineto()
    made.op("aten::mm", 0, 5)
    for i in range(10):
        made.launched("w", call=(i + 1, 1), kernel=(20 + 12 * i, 12), correlation=100 + i)
    two_steps(made)
    recorded, held, share = ranges(made)
    assert recorded == us(20, 310)
    assert held == us(140, 310), "the last warm-up kernel ends at 20 + 10 x 12"
    assert share == 0.0


def test_without_earlier_work_the_window_begins_with_the_first_kernel() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 5)
    two_steps(made)
    _, held, _ = ranges(made)
    assert held == us(150, 310)


def test_work_without_a_launch_record_before_the_first_launched_one_is_pre_roll() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 5)
    made.kernel("before the capture", 10, 80, correlation=999)
    two_steps(made)
    _, held, _ = ranges(made)
    assert held == us(90, 310)


def test_work_after_the_last_step_is_outside() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 5)
    two_steps(made)
    made.launched("later", call=(305, 2), kernel=(320, 50), correlation=3)
    recorded, held, _ = ranges(made)
    assert recorded == us(150, 370)
    assert held == us(150, 310)


def test_what_others_launched_inside_is_foreign() -> None:
    """A kernel launched after the steps runs on another stream for 30 of the 160 busy us."""
    made = Kineto()
    made.op("aten::mm", 0, 5)
    made.step(1, 100, 100)
    made.launched("k", call=(101, 2), kernel=(150, 10), correlation=1)
    made.launched("long", call=(102, 2), kernel=(160, 150), correlation=2)
    made.launched("other", call=(250, 2), kernel=(280, 30), correlation=3, stream=9)
    _, held, share = ranges(made)
    assert held == us(150, 310)
    assert share == pytest.approx(30 / 160)


def test_each_device_has_its_own_window() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 5)
    two_steps(made)
    made.launched("k", call=(110, 2), kernel=(120, 5), correlation=11, device=1)
    made.launched("k", call=(210, 2), kernel=(220, 5), correlation=12, device=1)
    assert ranges(made, device=0)[1] == us(150, 310)
    assert ranges(made, device=1)[1] == us(120, 225)


def test_on_a_cpu_the_window_is_the_steps() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 5)
    made.step(1, 100, 100)
    made.op("aten::mm", 110, 50)
    made.step(2, 205, 100)
    made.op("aten::mm", 210, 50)
    recorded, held, _ = ranges(made, device=None)
    assert recorded is None
    assert held == us(100, 305)


def test_without_steps_everything_recorded_is_the_window_but_not_the_profiler_s_own_span() -> None:
    made = Kineto()
    made.event("PyTorch Profiler (0)", "Trace", 0, 1000, tid="PyTorch Profiler")
    made.op("aten::mm", 100, 50)
    made.launched("k", call=(120, 2), kernel=(200, 60), correlation=1)
    assert ranges(made)[1] == us(100, 260)
    assert ranges(made, device=None)[1] == us(100, 150), "the host's own part"


def test_a_shifted_device_clock_shifts_the_host_s_part_of_its_window() -> None:
    """The kernel seems to start 8 us before its launch: the device's clock is 10 us late."""
    made = Kineto()
    made.op("aten::mm", 100, 50)
    made.launched("k", call=(120, 2), kernel=(112, 20), correlation=1)
    _, held, _ = ranges(made)
    assert held is not None
    assert held == Range(start=-10 * US, end=40 * US), "the operator, from 100 to 150, less 10"
    assert held.shifted(10 * US) == us(0, 50), "counted from the trace's first event, at 100"


def test_a_device_that_did_nothing_in_the_steps_has_no_window() -> None:
    made = Kineto()
    made.launched("k", call=(1, 2), kernel=(10, 60), correlation=1)
    made.step(1, 100, 100)
    assert ranges(made)[1] is None


def test_nothing_recorded_gives_nothing() -> None:
    assert ranges(Kineto()) == (None, None, None)


def test_a_range_must_not_end_before_it_starts() -> None:
    with pytest.raises(ValueError, match="before it starts"):
        Range(start=5, end=4)
