"""Every rule of "Cause of idle" by a gap written by hand: the device is idle from 100 to 200 us."""

import pytest

from tests.analysis.idle_cases import causes, explained, gap
from tests.kineto import Kineto
from workbench.analysis.causes import CAUSES

MAIN = 100


def test_without_a_launch_record_the_cause_is_unknown() -> None:
    made = Kineto(gpu=True)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.kernel("second", 200, 10, correlation=77)
    assert causes(explained(made)) == {"unknown": 100}


def test_a_queued_kernel_waits_in_the_device() -> None:
    """Launched at 60 to 65, while the first kernel still ran: the queue was not empty."""
    assert causes(explained(gap(call=(60, 5)))) == {"kernel_gap": 100}


def test_a_late_launch_costs_host_time_the_call_and_the_way_to_the_device() -> None:
    """[100, 180) is before the call, [180, 190) the call, [190, 200) the way to the device."""
    assert causes(explained(gap(call=(180, 10)))) == {"host_other": 80, "launch": 20}


def test_a_call_that_began_before_the_gap_is_launch_only() -> None:
    assert causes(explained(gap(call=(90, 60)))) == {"launch": 100}


def test_a_kernel_may_start_before_its_call_returns() -> None:
    assert causes(explained(gap(call=(150, 500)))) == {"host_other": 50, "launch": 50}


@pytest.mark.parametrize("call", [(60.0, 5.0), (120.0, 5.0)])
def test_a_device_that_takes_over_a_millisecond_was_busy_unseen(call: tuple[float, float]) -> None:
    """Whether queued or not: 1,300 us after the call cannot be spacing (UNRECORDED_NS is 1 ms)."""
    idle = explained(gap(call=call, until=1_425))
    after = 1_425 - max(100, call[0] + call[1])
    assert causes(idle)["unknown"] == after
    assert idle.unrecorded == after * 1_000


def test_a_first_launch_of_many_milliseconds_loads_its_kernel() -> None:
    """Fifty launches of 5 us make the usual call; the first one of a new name takes 3 ms."""
    made = Kineto(gpu=True)
    for i in range(50):
        made.launched("usual", call=(10 * i, 5), kernel=(10 * i + 8, 2), correlation=10 + i)
    made.launched("new", call=(600, 3_000), kernel=(3_590, 10), correlation=1)
    made.launched("new", call=(4_000, 3_000), kernel=(6_990, 10), correlation=2)
    found = causes(explained(made))
    assert found["kernel_loading"] == 3_590 - 600, "the first call, until its kernel starts"
    assert found["launch"] > 6_990 - 4_000 - 1, "the second call of that name loads nothing"


def test_loading_for_another_device_is_loading_as_well() -> None:
    """The thread's call for device 1 takes 3 ms of the gap of device 0, the first of its name."""
    made = gap(call=(3_200, 5), until=3_210)
    for i in range(50):
        made.launched("usual", call=(i, 0.5), kernel=(55 + i / 10, 0.1), correlation=10 + i)
    made.launched("new", call=(150, 3_000), kernel=(3_140, 10), correlation=3, device=1)
    found = causes(explained(made))
    assert found == {"host_other": 50 + 50, "kernel_loading": 3_000, "launch": 10}


def test_a_long_first_launch_among_long_launches_is_only_a_launch() -> None:
    """All calls take 3 ms, so none is longer than 20 times the median."""
    made = Kineto(gpu=True)
    for i in range(5):
        at = 10_000 * i
        made.launched(f"k{i}", call=(at, 3_000), kernel=(at + 2_990, 10), correlation=i + 1)
    assert "kernel_loading" not in causes(explained(made))


@pytest.mark.parametrize("name", ["cuModuleLoadData", "hipModuleLoadData", "cuLibraryLoadData"])
def test_loading_a_module_is_kernel_loading_anywhere(name: str) -> None:
    made = gap()
    made.op("aten::mm", 110, 60)
    made.runtime(name, 120, 30, correlation=9)
    assert causes(explained(made)) == {
        "host_other": 20,
        "host_operators": 30,
        "kernel_loading": 30,
        "launch": 20,
    }


def test_waiting_for_the_loader_is_input() -> None:
    made = gap()
    made.loader(110, 60)
    assert causes(explained(made)) == {"input": 60, "host_other": 20, "launch": 20}


def test_a_range_that_the_user_named_as_input_is_input() -> None:
    made = gap()
    made.range("load_batch", 110, 60)
    assert causes(explained(made))["input"] == 60


@pytest.mark.parametrize(
    "name",
    [
        "cudaMalloc",
        "cudaFree",
        "cudaHostAlloc",
        "hipMalloc",
        "hipFree",
        "cuMemCreate",
        "cnrtMalloc",
    ],
)
def test_asking_for_memory_is_allocation(name: str) -> None:
    made = gap()
    made.op("aten::empty", 105, 70)
    made.runtime(name, 110, 60, correlation=9)
    assert causes(explained(made)) == {
        "host_other": 10,
        "host_operators": 10,
        "allocation": 60,
        "launch": 20,
    }


def test_after_cuda_free_drained_the_device_the_host_pays() -> None:
    """The call waits for the device from 60 to 110, yet what follows it is host time."""
    made = gap()
    made.runtime("cudaFree", 60, 50, correlation=9)
    assert causes(explained(made)) == {"allocation": 10, "host_other": 70, "launch": 20}


def test_capturing_a_graph_lasts_from_its_begin_to_its_end() -> None:
    made = gap()
    made.runtime("cudaStreamBeginCapture", 110, 2, correlation=8)
    made.op("aten::mm", 120, 20)
    made.runtime("cudaStreamEndCapture", 150, 10, correlation=9)
    assert causes(explained(made)) == {"graph_capture": 50, "host_other": 30, "launch": 20}


@pytest.mark.parametrize("name", ["cudaGraphInstantiate", "hipGraphInstantiate"])
def test_making_a_graph_of_what_was_captured_belongs_to_the_capture(name: str) -> None:
    made = gap()
    made.runtime(name, 110, 60, correlation=9)
    assert causes(explained(made)) == {"graph_capture": 60, "host_other": 20, "launch": 20}


def test_recording_a_graph_of_compiled_code_is_capture_not_compilation() -> None:
    made = gap()
    made.op("CUDAGraphNode.record (dynamo_timed)", 110, 60)
    assert causes(explained(made))["graph_capture"] == 60


@pytest.mark.parametrize(
    "name",
    [
        "_compile.compile_inner (dynamo_timed)",
        "entire_frame_compile",
        "backend_compile",
        "inductor_compile",
        "CachingAutotuner.benchmark_all_configs (dynamo_timed)",
    ],
)
def test_compiling_is_compilation_with_all_that_runs_inside(name: str) -> None:
    made = gap()
    made.op(name, 110, 60)
    made.op("aten::empty", 120, 10)
    assert causes(explained(made)) == {"compilation": 60, "host_other": 20, "launch": 20}


@pytest.mark.parametrize(
    "name",
    ["Torch-Compiled Region: 0/0", "CompiledFunction", "## Call CompiledFxGraph fabc ##"],
)
def test_running_compiled_code_is_not_compilation(name: str) -> None:
    made = gap()
    made.range("step", 0, 10)
    made.op(name, 110, 60)
    assert "compilation" not in causes(explained(made))


def test_overhead_of_the_profiler_counts_before_the_launch_call() -> None:
    """A full buffer stops the launch call for 4 us, on no thread that the trace tells."""
    made = gap()
    made.event("Command Buffer Full", "overhead", 183, 4, pid=-1, tid=0)
    assert causes(explained(made)) == {"host_other": 80, "launch": 16, "profiler": 4}


def test_lazy_loading_among_the_overhead_records_is_kernel_loading() -> None:
    made = gap()
    made.event("Lazy Function Loading", "overhead", 183, 4, pid=-1, tid=0)
    assert causes(explained(made))["kernel_loading"] == 4


def test_between_two_steps_the_profiler_steps() -> None:
    made = gap()
    made.step(3, 30, 90)
    made.step(4, 150, 90)
    assert causes(explained(made)) == {"profiler": 30, "host_other": 50, "launch": 20}


def test_a_pause_between_two_steps_is_none_of_the_profilers() -> None:
    """0.2 s in which nothing was recorded: a validation, a checkpoint, a person."""
    made = gap(call=(200_200, 10), until=200_220)
    made.step(3, 30, 90)
    made.step(4, 200_150, 90)
    assert "profiler" not in causes(explained(made))


def test_a_step_of_the_profiler_may_run_an_operator_of_its_own() -> None:
    """Opening a range made a tensor in older versions of torch."""
    made = gap()
    made.step(3, 30, 90)
    made.op("aten::zeros", 130, 10)
    made.step(4, 150, 90)
    assert causes(explained(made))["profiler"] == 30


def test_a_loop_that_marks_its_own_steps_may_load_between_them() -> None:
    made = gap()
    made.step(3, 30, 90)
    made.loader(125, 20)
    made.step(4, 150, 90)
    found = causes(explained(made))
    assert found["input"] == 20
    assert "profiler" not in found


def test_the_python_frames_of_the_profiler_are_its_own() -> None:
    made = gap()
    made.python("train.py(1): main", 0, 400, ident=1, parent=None)
    made.python("torch/profiler/profiler.py(821): step", 110, 60, ident=2, parent=1)
    made.runtime("cudaDeviceSynchronize", 120, 30, correlation=9)
    assert causes(explained(made)) == {"profiler": 60, "host_python": 20, "launch": 20}


def test_the_collector_is_garbage_collection() -> None:
    made = gap()
    made.range("workbench.gc", 110, 60)
    assert causes(explained(made)) == {"garbage_collection": 60, "host_other": 20, "launch": 20}


def test_collecting_by_hand_shows_in_the_stacks() -> None:
    made = gap()
    made.python("train.py(1): main", 0, 400, ident=1, parent=None)
    made.python("<built-in function collect>", 110, 60, ident=2, parent=1)
    assert causes(explained(made)) == {"garbage_collection": 60, "host_python": 20, "launch": 20}


def test_operators_and_their_calls_are_host_operators() -> None:
    made = gap()
    made.op("aten::linear", 110, 60)
    made.op("aten::addmm", 120, 40)
    made.runtime("cudaFuncSetAttribute", 130, 5, correlation=9)
    assert causes(explained(made)) == {"host_operators": 60, "host_other": 20, "launch": 20}


def test_an_optimizer_is_an_operator_and_other_ranges_are_not() -> None:
    made = gap()
    made.step(1, 0, 400)
    made.range("my phase", 101, 78)
    made.range("DistributedDataParallel.forward", 102, 76)
    made.range("Optimizer.step#SGD.step", 110, 60)
    assert causes(explained(made)) == {"host_operators": 60, "host_other": 20, "launch": 20}


def test_stacks_tell_python_from_other_host_code() -> None:
    made = gap()
    made.python("train.py(1): main", 120, 200, ident=1, parent=None)
    assert causes(explained(made)) == {"host_other": 20, "host_python": 60, "launch": 20}


def test_calls_outside_the_framework_count_with_the_host_code_around_them() -> None:
    made = gap()
    made.python("train.py(1): main", 120, 200, ident=1, parent=None)
    made.runtime("cudaEventQuery", 130, 20, correlation=9)
    assert causes(explained(made)) == {"host_other": 20, "host_python": 60, "launch": 20}


def test_only_the_launching_thread_is_asked() -> None:
    made = gap()
    made.op("aten::mm", 110, 60, tid=555)
    assert causes(explained(made)) == {"host_other": 80, "launch": 20}


def test_of_several_kernels_that_end_a_gap_the_one_launched_first_counts() -> None:
    """Both start at 200; the one on the other thread was launched at 120, the other at 180."""
    made = gap()
    made.launched("early", call=(120, 10), kernel=(200, 10), correlation=3, stream=8, tid=555)
    assert causes(explained(made)) == {"host_other": 20, "launch": 80}


def test_no_stream_may_work_in_a_gap() -> None:
    """A copy on another stream covers [120, 150): two gaps are left."""
    made = gap()
    made.runtime("cudaMemcpyAsync", 60, 5, correlation=3)
    made.kernel(
        "Memcpy HtoD (Pinned -> Device)", 120, 30, correlation=3, stream=9, cat="gpu_memcpy"
    )
    idle = explained(made)
    assert idle.gaps == 2
    assert idle.largest == 50_000
    assert causes(idle) == {"kernel_gap": 20, "host_other": 30, "launch": 20}


def test_gaps_of_rounding_are_idle_but_not_counted() -> None:
    made = Kineto(gpu=True)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.launched("second", call=(60, 5), kernel=(100.002, 10), correlation=2)
    idle = explained(made)
    assert (idle.total, idle.gaps) == (2, 0)


def test_a_shifted_clock_is_put_right_before_anything_is_asked() -> None:
    """The device's clock is 30 us behind: kernels "start" 20 us before their launch.

    On the host's clock (offset 2 - (-20) = 22 us) the gap is [122, 222); the loader covers 50 of it
    and the call at 180 ends at 190.
    """
    made = Kineto(gpu=True)
    made.launched("first", call=(70, 5), kernel=(50, 50), correlation=1)
    made.launched("second", call=(180, 10), kernel=(200, 10), correlation=2)
    made.loader(125, 50)
    idle = explained(made)
    assert idle.uncertainty == 22_000
    assert causes(idle) == {"input": 50, "host_other": 8, "launch": 42}
    begins = int(idle.pieces.start[0]) - idle.range.start
    assert begins == 50_000, "pieces keep the device's clock: the first kernel ends 50 us on"


def test_clocks_that_do_not_compare_explain_nothing() -> None:
    made = gap()
    made.launched("third", call=(5_000, 5), kernel=(300, 10), correlation=3)
    idle = explained(made)
    assert causes(idle) == {"unknown": 190}
    assert idle.by_cause["launch"] is None


def test_what_a_trace_cannot_hold_is_not_measured_instead_of_zero() -> None:
    idle = explained(gap())
    absent = {cause for cause, ns in idle.by_cause.items() if ns is None}
    assert absent == {"input", "garbage_collection", "host_python"}
    assert idle.by_cause["allocation"] == 0
    assert tuple(idle.by_cause) == CAUSES


def test_records_of_their_kind_make_causes_measurable() -> None:
    """All of them lie outside the gap: measured, and zero."""
    made = gap()
    made.loader(10, 5)
    made.range("workbench.gc", 20, 5)
    made.python("train.py(1): main", 30, 1, ident=1, parent=None)
    idle = explained(made)
    assert {idle.by_cause[c] for c in ("input", "garbage_collection", "host_python")} == {0}


def test_our_own_capture_would_have_shown_a_collection() -> None:
    made = gap()
    made.range("workbench.input", 10, 5)
    assert explained(made).by_cause["garbage_collection"] == 0


def test_a_trace_of_the_device_alone_knows_no_cause() -> None:
    made = Kineto(gpu=True)
    made.kernel("first", 50, 50, correlation=1)
    made.kernel("second", 200, 10, correlation=2)
    idle = explained(made)
    assert {cause: ns for cause, ns in idle.by_cause.items() if ns is not None} == {
        "unknown": 100_000
    }
