"""Which call launched which work, in every era's way of saying it, and whose clock is late."""

import numpy as np
import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.launches import join_launches
from workbench.trace.table import Trace


def launch_times(trace: Trace) -> dict[str, int | None]:
    """Per device work, the start of its launching call in us."""
    launches = join_launches(trace)
    events = trace.events
    return {
        trace.names[events.name[row]]: (
            None if launches.launch[row] < 0 else int(events.ts[launches.launch[row]]) // US
        )
        for row in np.flatnonzero(events.device >= 0)
    }


@pytest.mark.parametrize(
    ("call", "category", "work"),
    [
        ("cudaLaunchKernel", "cuda_runtime", "kernel"),
        ("cuLaunchKernelEx", "cuda_driver", "kernel"),
        ("cudaLaunchKernel", "Runtime", "Kernel"),
        ("hipLaunchKernel", "hip_runtime", "kernel"),
        ("urEnqueueKernelLaunch", "xpu_runtime", "kernel"),
        ("cudaMemcpyAsync", "cuda_runtime", "gpu_memcpy"),
        ("cudaMemsetAsync", "Runtime", "Memset"),
    ],
)
def test_work_and_call_of_the_same_correlation_belong_together(
    call: str, category: str, work: str
) -> None:
    made = Kineto()
    made.op("aten::mm", 0, 5)
    made.event(call, category, 10, 5, args={"correlation": 7})
    made.kernel("work", 30, 10, correlation=7, cat=work)
    assert launch_times(columns(made)) == {"work": 10}


def test_a_graph_launch_is_the_call_of_all_its_kernels() -> None:
    made = Kineto()
    made.runtime("cudaGraphLaunch", 0, 5, correlation=7)
    for i in range(3):
        made.kernel(f"k{i}", 20 + 10 * i, 10, correlation=7)
    assert launch_times(columns(made)) == {"k0": 0, "k1": 0, "k2": 0}


def test_of_two_calls_with_one_id_the_latest_before_the_work_launched_it() -> None:
    """Two copies of one recording in a file, the second 11.56 s later: the ids repeat."""
    later = 11_560_000.0
    made = Kineto()
    for shift, name in ((0.0, "first"), (later, "second")):
        made.runtime("cudaLaunchKernel", shift + 10, 5, correlation=7)
        made.kernel(name, shift + 30, 10, correlation=7)
    assert launch_times(columns(made)) == {"first": 0, "second": int(later)}


def test_ids_of_nothing_join_nothing() -> None:
    made = Kineto()
    made.runtime("cudaStreamSynchronize", 0, 5, correlation=0)
    made.kernel("zero", 10, 5, correlation=0)
    made.kernel("none", 20, 5)
    assert launch_times(columns(made)) == {"zero": None, "none": None}


@pytest.mark.parametrize("category", ["ac2g", "async_gpu"])
def test_the_arrow_stands_in_where_there_is_no_correlation(category: str) -> None:
    made = Kineto()
    made.op("aten::mm", 0, 5)
    made.event("cudaLaunchKernel", "cuda_runtime", 10, 5)
    made.kernel("work", 30, 10)
    arrow = {"cat": category, "id": 3, "name": category}
    made.events.append({**arrow, "ph": "s", "pid": 100, "tid": 100, "ts": 10})
    made.events.append({**arrow, "ph": "f", "bp": "e", "pid": 0, "tid": 7, "ts": 30})
    assert launch_times(columns(made)) == {"work": 10}


def test_each_device_has_its_own_clock_offset() -> None:
    """Device 0 starts 5 us after its launch at the least; device 1 seems to start 31 us before."""
    made = Kineto()
    made.launched("a", call=(100, 5), kernel=(105, 10), correlation=1, device=0)
    made.launched("b", call=(200, 5), kernel=(169, 10), correlation=2, device=1)
    made.launched("c", call=(300, 5), kernel=(300, 10), correlation=3, device=1)
    launches = join_launches(columns(made))
    assert launches.clock_offset == {0: 0, 1: 33 * US}, "31 us, and 2 us for the way to the device"
    assert launches.clock_ok == {0: True, 1: True}


def test_an_offset_above_a_millisecond_is_no_offset() -> None:
    made = Kineto()
    made.launched("a", call=(5_000, 5), kernel=(3_000, 10), correlation=1)
    launches = join_launches(columns(made))
    assert launches.clock_ok == {0: False}
    assert launches.clock_offset == {0: 0}, "not applied"


def test_a_trace_of_a_device_alone_has_no_launches() -> None:
    made = Kineto()
    made.kernel("a", 0, 5, correlation=1)
    launches = join_launches(columns(made))
    assert launches.launch.tolist() == [-1]
    assert launches.clock_offset == {0: 0}
