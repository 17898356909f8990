"""Which steps are whole, and how long each took by what the device finished."""

import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.launches import join_launches
from workbench.analysis.ranges import Range
from workbench.analysis.steps import Steps, find_steps
from workbench.analysis.trust import check_trust
from workbench.analysis.window import window


def steps_of(made: Kineto) -> Steps:
    trace = columns(made)
    steps = find_steps(trace, join_launches(trace))
    assert steps is not None
    return steps


def training(step: int, ts: float, *, optimizer: bool = True) -> Kineto:
    """The operators of one CPU step of 100 us."""
    made = Kineto()
    made.step(step, ts, 100)
    made.op("aten::linear", ts + 10, 20)
    made.op("aten::relu", ts + 30, 10)
    made.op("autograd::engine::evaluate_function: AddmmBackward0", ts + 50, 20)
    if optimizer:
        made.range("Optimizer.step#SGD.step", ts + 80, 10)
        made.op("aten::_foreach_add_", ts + 82, 5)
    return made


def together(*parts: Kineto) -> Kineto:
    made = Kineto()
    for part in parts:
        made.events += part.events
    return made


def test_on_a_cpu_a_step_takes_as_long_as_its_range() -> None:
    steps = steps_of(together(training(3, 0), training(4, 100)))
    assert steps.numbers == (3, 4)
    assert steps.source == "profiler_step"
    assert steps.host_ns.tolist() == steps.time_ns.tolist() == [100 * US, 100 * US]
    assert steps.dropped == 0


def test_on_a_device_a_step_lasts_from_completion_to_completion() -> None:
    """The host is through with each step in 10 us; the device needs 50 for each."""
    made = Kineto()
    for i in range(3):
        made.step(i, 10 * i, 10)
        call, kernel = (10 * i + 1, 2), (20 + 50 * i, 50)
        made.launched("k", call=call, kernel=kernel, correlation=i + 1)
    steps = steps_of(made)
    assert steps.host_ns.tolist() == [10 * US] * 3
    assert steps.time_ns.tolist() == [50 * US] * 2


def test_a_side_stream_that_ends_late_makes_no_time_negative() -> None:
    """Work of step 0 ends at 100, that of step 1 at 60: both steps are complete at 100."""
    made = Kineto()
    made.step(0, 0, 10)
    made.step(1, 10, 10)
    made.step(2, 20, 10)
    made.launched("slow", call=(1, 1), kernel=(5, 95), correlation=1, stream=20)
    made.launched("k", call=(11, 1), kernel=(50, 10), correlation=2)
    made.launched("k", call=(21, 1), kernel=(110, 10), correlation=3)
    assert steps_of(made).time_ns.tolist() == [0, 20 * US]


def test_the_mirror_of_a_step_on_the_device_is_not_a_step() -> None:
    made = together(training(3, 0), training(4, 100))
    mirror = {"pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}
    made.event("ProfilerStep#3", "gpu_user_annotation", 40, 20, **mirror)
    assert steps_of(made).numbers == (3, 4)


def test_a_torso_without_work_is_dropped_and_counted() -> None:
    """A loop that ends inside the active window leaves a range that holds no step."""
    made = together(training(0, 0), training(1, 100))
    made.step(2, 200, 3)
    steps = steps_of(made)
    assert (steps.numbers, steps.dropped) == ((0, 1), 1)


def test_a_torso_that_holds_an_evaluation_is_dropped_though_it_works_hard() -> None:
    made = together(training(0, 0), training(1, 100))
    made.step(2, 200, 500)
    for i in range(40):
        made.op("aten::linear", 210 + 10 * i, 5)
    steps = steps_of(made)
    assert (steps.numbers, steps.dropped) == ((0, 1), 1)


def test_a_step_cut_before_its_optimizer_is_dropped() -> None:
    made = together(training(0, 0), training(1, 100), training(2, 200, optimizer=False))
    assert steps_of(made).dropped == 1


def test_gradient_accumulation_does_not_look_like_a_cut() -> None:
    """Only every second step has the optimizer, so its absence in the last says nothing."""
    parts = [training(i, 100 * i, optimizer=i % 2 == 0) for i in range(4)]
    assert steps_of(together(*parts)).dropped == 0


def test_a_last_step_whose_kernels_never_arrived_is_dropped() -> None:
    made = Kineto()
    for i in range(3):
        made.step(i, 100 * i, 100)
        made.runtime("cudaLaunchKernel", 100 * i + 1, 2, correlation=i + 1)
        made.runtime("cudaLaunchKernel", 100 * i + 5, 2, correlation=i + 11)
        made.kernel("k", 100 * i + 10, 20, correlation=i + 1)
        if i < 2:
            made.kernel("k", 100 * i + 40, 20, correlation=i + 11)
    assert steps_of(made).numbers == (0, 1)


def test_a_single_step_has_nothing_to_be_compared_with() -> None:
    assert steps_of(training(7, 0)).numbers == (7,)


def test_launches_without_any_kernel_leave_step_times_unmeasured() -> None:
    """The host's time is not the step's while a device works unseen."""
    made = Kineto()
    for i in range(3):
        made.step(i, 100 * i, 100)
        made.runtime("cudaLaunchKernel", 100 * i + 1, 2, correlation=i + 1)
    steps = steps_of(made)
    assert len(steps.host_ns) == 3
    assert len(steps.time_ns) == 0


@pytest.mark.parametrize("category", ["user_annotation", "cpu_op", "Operator"])
def test_steps_of_every_era_are_found(category: str) -> None:
    made = Kineto()
    made.event("ProfilerStep#5", category, 0, 10)
    made.event("ProfilerStep #6", category, 10, 10)
    assert steps_of(made).numbers == (5, 6)


def test_no_marks_no_steps() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 5)
    trace = columns(made)
    assert find_steps(trace, join_launches(trace)) is None


def test_instants_know_their_step() -> None:
    steps = steps_of(together(training(3, 0), training(4, 150)))
    at = steps.start[:1]
    assert steps.step_of(at).tolist() == [0]
    assert steps.step_of(at + 120 * US).tolist() == [-1], "between the two"
    assert steps.step_of(at + 249 * US).tolist() == [1]
    assert steps.step_of(at - 1).tolist() == [-1]


def test_a_step_that_our_own_recording_calls_partial_is_dropped() -> None:
    """Stopped late in step 4, after its optimizer: nothing in the events shows it."""
    made = together(training(3, 0), training(4, 100))
    made.header["workbench"] = {"partial_step": 4}
    steps = steps_of(made)
    assert steps.numbers == (3,)
    assert steps.dropped == 1


def test_of_two_recordings_in_one_file_the_longer_one_is_judged() -> None:
    """Steps 5, 6 and, a second later, 5, 6, 7: the pause is no step time and in no window."""
    made = Kineto(gpu=True)
    for number, (step, at) in enumerate(
        ((5, 0), (6, 100), (5, 1_000_000), (6, 1_000_100), (7, 1_000_200))
    ):
        made.step(step, at, 100)
        made.op("aten::mm", at + 10, 20)
        made.launched("gemm", call=(at + 12, 3), kernel=(at + 20, 50), correlation=number + 1)
    trace = columns(made)
    launches = join_launches(trace)
    steps = find_steps(trace, launches)
    assert steps is not None
    assert (steps.numbers, steps.elsewhere) == ((5, 6, 7), 2)
    assert steps.time_ns.tolist() == [100 * US, 100 * US]
    judged = window(trace, 0, steps, launches)
    assert judged == Range(start=1_000_020 * US, end=1_000_270 * US), "from its own first kernel on"
    trust = check_trust(trace, launches, steps)
    assert trust.ok
    assert [violation.code for violation in trust.violations] == ["several_recordings"]


def test_a_schedule_that_waits_in_between_makes_two_recordings() -> None:
    """Steps 1 to 3 and, five seconds later, 101 and 102, with nothing recorded in between."""
    made = Kineto(gpu=True)
    ats = (0, 100, 200, 5_000_000, 5_000_100)
    for number, (step, at) in enumerate(zip((1, 2, 3, 101, 102), ats, strict=True)):
        made.step(step, at, 100)
        made.op("aten::mm", at + 10, 20)
        made.launched("gemm", call=(at + 12, 3), kernel=(at + 20, 50), correlation=number + 1)
    steps = steps_of(made)
    assert (steps.numbers, steps.elsewhere) == ((1, 2, 3), 2)
    assert steps.time_ns.tolist() == [100 * US, 100 * US]
    made.op("aten::mm", 1_000_000, 20)  # it did record there: numbers are missing, no schedule
    assert steps_of(made).elsewhere == 0


def test_numbers_that_start_again_without_a_pause_are_one_recording() -> None:
    """A loop that counts in epochs."""
    steps = steps_of(together(training(1, 0), training(2, 100), training(1, 200)))
    assert (steps.numbers, steps.elsewhere) == ((1, 2, 1), 0)
