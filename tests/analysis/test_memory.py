"""Peak memory of the allocator, and how often steps ask the device for more."""

from tests.analysis.traces import columns
from tests.kineto import Kineto
from workbench.analysis.memory import memory_summary

CPU, CUDA = 0, 1


def allocated(made: Kineto, ts: float, *, total: int | None, kind: int, index: int) -> None:
    """A ``[memory]`` instant; ``total`` is what the allocator then holds."""
    args: dict[str, int] = {"Bytes": 10, "Addr": 1, "Device Type": kind, "Device Id": index}
    if total is not None:
        args |= {"Total Allocated": total, "Total Reserved": 2 * total}
    made.events.append(
        {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 100}
        | {"tid": 100, "ts": ts, "args": args}
    )


def test_the_peak_is_that_of_the_fullest_device_and_not_of_the_host() -> None:
    made = Kineto()
    made.op("aten::empty", 0, 10)
    for ts, total in enumerate((100, 700, 300)):
        allocated(made, ts, total=total, kind=CUDA, index=0)
    allocated(made, 5, total=500, kind=CUDA, index=1)
    allocated(made, 6, total=9_000, kind=CPU, index=-1)
    found = memory_summary(columns(made))
    assert found is not None
    assert found.peak_bytes == 700
    assert found.peak_by_device == {(CPU, -1): 9_000, (CUDA, 0): 700, (CUDA, 1): 500}
    assert found.device_allocations_per_step is None, "no runtime calls were recorded"


def test_without_a_device_the_host_is_told() -> None:
    made = Kineto()
    made.op("aten::empty", 0, 10)
    allocated(made, 1, total=9_000, kind=CPU, index=-1)
    found = memory_summary(columns(made))
    assert found is not None
    assert found.peak_bytes == 9_000


def test_device_allocations_are_counted_in_the_complete_steps() -> None:
    """Three in two steps; pinned host memory and the one before the steps do not count."""
    made = Kineto()
    made.runtime("cudaMalloc", 0, 5, correlation=1)
    for number, ts in ((1, 100), (2, 200)):
        made.step(number, ts, 100)
        made.launched("k", call=(ts + 1, 2), kernel=(ts + 50, 20), correlation=10 * number)
    made.runtime("cudaMalloc", 110, 5, correlation=2)
    made.runtime("cudaMalloc", 150, 5, correlation=3)
    made.runtime("hipMalloc", 210, 5, correlation=4)
    made.runtime("cudaHostAlloc", 220, 5, correlation=5)
    made.runtime("cudaMallocHost", 230, 5, correlation=6)
    found = memory_summary(columns(made))
    assert found is not None
    assert found.device_allocations_per_step == 1.5
    assert found.peak_bytes is None, "no allocator events were recorded"


def test_steps_that_ask_for_nothing_are_measured_and_zero() -> None:
    made = Kineto()
    for number, ts in ((1, 100), (2, 200)):
        made.step(number, ts, 100)
        made.launched("k", call=(ts + 1, 2), kernel=(ts + 50, 20), correlation=number)
    found = memory_summary(columns(made))
    assert found is not None
    assert found.device_allocations_per_step == 0.0


def test_a_trace_without_any_of_it_is_not_measured() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 10)
    assert memory_summary(columns(made)) is None
    assert memory_summary(columns(Kineto())) is None
