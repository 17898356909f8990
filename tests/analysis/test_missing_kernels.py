"""Launches whose kernel is missing, apart from those that only go into a graph."""

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.launches import join_launches
from workbench.analysis.missing_kernels import (
    capture_spans,
    is_launch,
    launches_without_kernel,
)


def lost(made: Kineto) -> list[int]:
    """Starts, in us, of the launches without a kernel."""
    trace = columns(made)
    rows = launches_without_kernel(trace, join_launches(trace))
    return (trace.events.ts[rows] // US).tolist()


def test_a_launch_without_its_kernel_is_found() -> None:
    made = Kineto()
    made.launched("k", call=(0, 5), kernel=(10, 5), correlation=1)
    made.runtime("cudaLaunchKernel", 20, 5, correlation=2)
    assert lost(made) == [20]


def test_a_set_of_no_bytes_leaves_no_record_and_is_not_missed() -> None:
    made = Kineto()
    made.runtime("cudaMemsetAsync", 0, 5, correlation=1)
    made.runtime("cudaMemcpyAsync", 10, 5, correlation=2)
    assert lost(made) == []


def test_launches_into_a_graph_have_no_kernels() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 1)
    made.runtime("cudaStreamBeginCapture", 10, 2, correlation=1)
    made.runtime("cudaLaunchKernel", 20, 2, correlation=2)
    made.runtime("cudaStreamEndCapture", 30, 2, correlation=3)
    made.runtime("cudaLaunchKernel", 40, 2, correlation=4)
    assert lost(made) == [40]


def test_a_capture_that_began_before_the_recording_reaches_to_its_start() -> None:
    made = Kineto()
    made.runtime("hipLaunchKernel", 0, 2, correlation=1)
    made.runtime("hipStreamEndCapture", 10, 2, correlation=2)
    made.runtime("hipLaunchKernel", 20, 2, correlation=3)
    assert lost(made) == [20]


def test_a_capture_that_does_not_end_reaches_to_the_last_event() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 100)
    made.runtime("cudaStreamBeginCapture", 10, 2, correlation=1)
    spans = capture_spans(columns(made))
    assert (spans.start.tolist(), spans.end.tolist()) == ([10 * US], [100 * US])


def test_nested_calls_of_runtime_and_driver_are_one_launch() -> None:
    made = Kineto()
    made.event("urEnqueueKernelLaunch", "xpu_runtime", 0, 10, args={"correlation": 1})
    made.event("zeCommandListAppendLaunchKernel", "xpu_driver", 2, 5, args={"correlation": 2})
    made.kernel("k", 20, 5, correlation=1)
    assert lost(made) == []


def test_names_of_launches() -> None:
    for name in (
        "cudaLaunchKernel",
        "cudaLaunchKernelExC",
        "cuLaunchKernelEx",
        "cudaLaunchCooperativeKernel",
        "hipExtModuleLaunchKernel",
        "cudaGraphLaunch",
        "cnInvokeKernel",
    ):
        assert is_launch(name), name
    for name in ("cudaMemcpyAsync", "cudaStreamIsCapturing", "cudaLaunchHostFunc"):
        assert not is_launch(name), name
