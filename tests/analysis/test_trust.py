"""What a trace can carry: each check fires on its fault and stays silent on what is legal."""

from dataclasses import replace

import pytest

from tests.analysis.traces import columns
from tests.kineto import Kineto
from workbench.analysis.launches import join_launches
from workbench.analysis.steps import find_steps
from workbench.analysis.trust import Trust, check_trust
from workbench.trace.table import Trace, Violation


def trust(made: Kineto | Trace) -> Trust:
    trace = made if isinstance(made, Trace) else columns(made)
    launches = join_launches(trace)
    return check_trust(trace, launches, find_steps(trace, launches))


def codes(made: Kineto | Trace) -> list[str]:
    return [violation.code for violation in trust(made).violations]


def healthy() -> Kineto:
    """Ten kernels of 100 us back to back, each with its launch."""
    made = Kineto(gpu=True)
    made.op("aten::mm", 0, 1000)
    for i in range(10):
        made.launched("k", call=(10 * i, 5), kernel=(100 + 100 * i, 100), correlation=i + 1)
    return made


def test_a_healthy_trace_has_nothing_to_say() -> None:
    assert trust(healthy()) == Trust(ok=True, violations=())


def test_an_empty_trace_breaks_nothing_and_says_that_it_is_empty() -> None:
    assert codes(Kineto()) == ["no_events"]


def test_launches_without_any_device_record_are_not_an_idle_device() -> None:
    made = Kineto()
    for i in range(3):
        made.runtime("cudaLaunchKernel", 10 * i, 5, correlation=i + 1)
    found = trust(made)
    assert not found.ok
    assert [(v.code, v.count) for v in found.violations] == [("device_not_recorded", 3)]
    assert found.voids("devices")
    assert found.voids("step_time")


def test_an_accelerator_in_the_header_without_any_record_was_not_measured() -> None:
    made = Kineto(gpu=True)
    made.op("aten::mm", 0, 100)
    assert codes(made) == ["device_not_recorded"]


def test_a_cpu_trace_is_no_broken_device_trace() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 100)
    assert trust(made).ok


def test_kernels_without_launch_void_causes_above_one_percent_of_device_time() -> None:
    made = healthy()
    made.kernel("orphan", 1100, 50, correlation=999)
    found = trust(made)
    assert [v.code for v in found.violations] == ["missing_launch"]
    assert found.violations[0].share == pytest.approx(50 / 1050)
    assert not found.ok
    assert found.voids("causes")
    assert not found.voids("devices"), "busy time needs no launch"


def test_a_few_kernels_without_launch_are_listed_and_void_nothing() -> None:
    made = healthy()
    made.kernel("orphan", 1100, 5, correlation=999)
    found = trust(made)
    assert [v.code for v in found.violations] == ["missing_launch"]
    assert found.ok
    assert not found.voids("causes")


def test_work_from_before_the_capture_is_legal() -> None:
    made = healthy()
    made.kernel("before", 40, 50, correlation=999)
    made.kernel("before, on a stream of its own", 30, 50, correlation=998, stream=20)
    assert codes(made) == []


def test_a_device_alone_cannot_say_why_it_waits() -> None:
    made = Kineto()
    made.kernel("k", 0, 100)
    assert codes(made) == ["missing_launch"]


def test_a_lost_kernel_makes_busy_time_a_lower_bound() -> None:
    made = healthy()
    made.runtime("cudaLaunchKernel", 200, 5, correlation=50)
    found = trust(made)
    assert [(v.code, v.share) for v in found.violations] == [("missing_kernel", 1 / 11)]
    assert found.voids("busy")


def test_a_constant_clock_offset_is_legal() -> None:
    made = Kineto()
    made.launched("k", call=(100, 5), kernel=(69, 10), correlation=1)
    assert codes(made) == []


def test_clocks_that_differ_by_more_than_a_millisecond_void_causes() -> None:
    made = Kineto()
    made.launched("k", call=(5_000, 5), kernel=(1_000, 10), correlation=1)
    found = trust(made)
    assert [v.code for v in found.violations] == ["clock"]
    assert not found.ok
    assert found.voids("causes")


def test_a_device_that_waits_long_after_a_launch_did_something_unrecorded() -> None:
    """A kernel launched at 43 us starts 463 ms later behind a graph launched before the capture."""
    made = Kineto()
    made.op("aten::mm", 0, 20)
    made.launched("first", call=(10, 5), kernel=(20, 10), correlation=1)
    made.launched("late", call=(43, 5), kernel=(463_000, 10), correlation=2)
    found = trust(made)
    assert [v.code for v in found.violations] == ["unrecorded_device_work"]
    assert not found.ok
    # From the end of "first" at 30 us to the start of "late" at 463 000 us.
    assert found.violations[0].message.startswith("Once the device seemed idle")
    assert "(for 463.0 ms)" in found.violations[0].message


def test_a_late_launch_explains_a_long_gap() -> None:
    made = Kineto()
    made.launched("first", call=(10, 5), kernel=(20, 10), correlation=1)
    made.launched("late", call=(462_900, 5), kernel=(463_000, 10), correlation=2)
    assert codes(made) == []


def overlapping(call: str, *, correlation: int = 2, by: float = 5) -> Kineto:
    """A second kernel that starts before the first on its stream has ended."""
    made = Kineto()
    made.runtime("cudaLaunchKernel" if correlation == 2 else call, 0, 5, correlation=1)
    made.kernel("first", 20, 100, correlation=1)
    if correlation == 2:
        made.runtime(call, 8, 5, correlation=2)
    made.kernel("second", 120 - by, 50, correlation=correlation)
    return made


def test_two_kernels_at_once_on_one_stream_void_sums_of_kernels() -> None:
    found = trust(overlapping("cudaLaunchKernel"))
    assert [v.code for v in found.violations] == ["stream_overlap"]
    assert found.violations[0].voids == ("kernels",)


def test_a_trace_that_was_written_twice_is_called_doubled_not_overlapping() -> None:
    """Three kernels with their calls, each record there twice: sums count 200 for 100."""
    made = Kineto()
    for each in range(3):
        made.op("aten::mm", 100 * each, 8)
        made.launched(
            "gemm", call=(100 * each, 5), kernel=(100 * each + 20, 50), correlation=each + 1
        )
    made.events = [event for each in made.events for event in (each, dict(each))]
    found = trust(made)
    assert [v.code for v in found.violations] == ["doubled_records"]
    doubled = found.violations[0]
    assert (doubled.count, doubled.share, doubled.voids) == (3, 0.5, ("kernels", "queue"))
    assert not found.ok


def test_a_doubled_trace_of_the_cpu_is_told_and_a_redispatch_is_not() -> None:
    once = Kineto()
    for each in range(4):
        once.op("aten::mm", 100 * each, 50, **{"External id": each + 1})
    once.op("aten::mul", 400, 5, **{"External id": 9})
    once.op("aten::mul", 400, 5, **{"External id": 9})
    assert codes(once) == [], "a wrapper that takes no time of its own"
    once.events = [event for each in once.events for event in (each, dict(each))]
    assert codes(once) == ["doubled_records"]


@pytest.mark.parametrize("call", ["cudaLaunchKernelExC", "cuLaunchKernelEx"])
def test_a_programmatic_launch_may_start_early(call: str) -> None:
    assert codes(overlapping(call)) == []


def test_pre_roll_of_a_kernel_that_is_launched_so_later_may_start_early() -> None:
    """Its own launch call lies before the capture; its name says how it is launched."""
    made = Kineto()
    made.op("aten::mm", 0, 5)
    made.kernel("first", 10, 100, correlation=901)
    made.kernel("attention", 105, 50, correlation=902)
    made.runtime("cudaLaunchKernelExC", 100, 5, correlation=1)
    made.kernel("attention", 200, 50, correlation=1)
    assert codes(made) == []


def test_kernels_of_one_graph_launch_may_overlap() -> None:
    assert codes(overlapping("cudaGraphLaunch", correlation=1)) == ["graph_replay"]


def test_rounding_to_a_microsecond_is_no_overlap() -> None:
    assert codes(overlapping("cudaLaunchKernel", by=1)) == []


def test_streams_may_overlap_each_other() -> None:
    made = Kineto()
    for stream in range(7, 10):
        made.launched("k", call=(stream, 1), kernel=(20, 100), correlation=stream, stream=stream)
    assert codes(made) == []


def test_a_kernel_longer_than_the_whole_recording_is_absurd() -> None:
    made = healthy()
    made.launched("k", call=(900, 5), kernel=(1100, 4e9), correlation=77)
    found = trust(made)
    assert "absurd_duration" in [v.code for v in found.violations]
    assert found.voids("devices")


def test_a_cut_last_step_is_listed_and_harmless() -> None:
    made = Kineto()
    for i in range(3):
        made.step(i, 100 * i, 100)
        if i < 2:
            made.op("aten::mm", 100 * i + 10, 50)
    found = trust(made)
    assert [(v.code, v.count) for v in found.violations] == [("steps_incomplete", 1)]
    assert found.ok
    assert not found.voids("steps")


def test_step_numbers_missing_in_between_void_numbers_per_step() -> None:
    made = Kineto()
    for number, ts in ((1, 0), (2, 100), (5, 200)):
        made.step(number, ts, 100)
        made.op("aten::mm", ts + 10, 50)
    found = trust(made)
    assert [(v.code, v.count) for v in found.violations] == [("steps_incomplete", 2)]
    assert found.voids("steps")


def test_what_the_reader_found_comes_first() -> None:
    cut = Violation(code="truncated", message="ends inside an event", voids=("totals",))
    mended = Violation(code="repaired_json", message="a comma", voids=("totals",))
    trace = columns(healthy())
    assert not trust(replace(trace, violations=(cut,))).ok
    assert trust(replace(trace, violations=(mended,))) == Trust(
        ok=True, violations=(replace(mended, voids=()),)
    )


def test_what_to_do_about_lost_launches_depends_on_what_was_recorded() -> None:
    """A device alone needs its host; with one, the file leaves out what would join them."""
    made = Kineto(gpu=True)
    made.kernel("gemm", 10, 100)
    (alone,) = [v for v in trust(made).violations if v.code == "missing_launch"]
    assert alone.message.endswith("Record host and device activities together.")
    made.op("aten::mm", 0, 20)
    (both,) = [v for v in trust(made).violations if v.code == "missing_launch"]
    assert "no call of it carries their correlation" in both.message
