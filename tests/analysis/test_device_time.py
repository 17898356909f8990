"""Busy, idle and exposed time: lengths of unions that sum to the range."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.device_time import DeviceTime, device_time, work_classes
from workbench.analysis.devices import described_devices, device_indices
from workbench.analysis.intervals import gaps
from workbench.analysis.ranges import Range
from workbench.analysis.window import recording

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def recorded(made: Kineto, device: int | None = 0) -> DeviceTime:
    trace = columns(made)
    held = recording(trace, device)
    assert held is not None
    return device_time(trace, device, held)


def test_only_the_last_bucket_of_a_gradient_exchange_is_exposed() -> None:
    """Four all-reduces run under the backward kernels, the fifth after them."""
    made = Kineto()
    made.kernel("backward", 0, 100, stream=7)
    for i in range(4):
        made.kernel(NCCL, 10 + 20 * i, 15, stream=20)
    made.kernel(NCCL, 100, 7, stream=20)
    time = recorded(made)
    assert time.communication == 67 * US
    assert time.exposed_communication == 7 * US
    assert (time.compute, time.idle) == (100 * US, 0)


def test_communication_half_covered_is_half_exposed_with_two_streams() -> None:
    made = Kineto()
    made.kernel("gemm", 0, 50, stream=7)
    made.kernel("relu", 40, 20, stream=8)
    made.kernel(NCCL, 30, 60, stream=20)
    time = recorded(made)
    assert time.busy == 90 * US
    assert time.compute == 60 * US
    assert time.exposed_communication == 30 * US


def test_a_copy_is_exposed_where_neither_compute_nor_communication_runs() -> None:
    made = Kineto()
    made.kernel("gemm", 0, 10)
    made.kernel(NCCL, 20, 10, stream=20)
    made.kernel("Memcpy HtoD (Pageable -> Device)", 5, 30, stream=9, cat="gpu_memcpy")
    time = recorded(made)
    assert time.memory == 30 * US
    assert time.exposed_memory == 15 * US, "10 to 20 and 30 to 35"


def test_synchronisation_records_are_no_work() -> None:
    """10 ms of a kernel and 90 ms of waiting for it are 10 % busy, not 100 %."""
    made = Kineto()
    made.kernel("gemm", 0, 10_000)
    made.event("Stream Sync", "cuda_sync", 0, 100_000, pid=0, tid=7, args={"stream": 7})
    made.kernel("end", 99_999, 1)
    time = recorded(made)
    assert time.range.length == 100_000 * US
    assert time.busy == 10_001 * US


def test_overlaps_on_one_stream_are_counted_once() -> None:
    made = Kineto()
    made.kernel("a", 0, 10)
    made.kernel("b", 8, 7)
    assert recorded(made).busy == 15 * US


def test_a_gap_is_where_no_stream_works() -> None:
    made = Kineto()
    made.kernel("a", 0, 10, stream=7)
    made.kernel("b", 5, 15, stream=8)
    made.kernel("c", 50, 10, stream=7)
    time = recorded(made)
    quiet = gaps(work_classes(columns(made), 0).all, time.range.start, time.range.end)
    assert quiet.start.tolist() == [20 * US]
    assert quiet.end.tolist() == [50 * US]
    assert time.idle == 30 * US


def test_a_range_wider_than_the_work_is_idle_at_its_borders() -> None:
    made = Kineto()
    made.kernel("a", 10, 10)
    time = device_time(columns(made), 0, Range(start=-5 * US, end=30 * US))
    assert time.idle == 25 * US, "the trace begins with the kernel, so the range reaches both ways"


def test_devices_are_told_apart_and_may_be_taken_as_one() -> None:
    made = Kineto()
    made.kernel("a", 0, 10, device=0)
    made.kernel("b", 5, 10, device=3)
    assert device_indices(columns(made)) == (0, 3)
    assert recorded(made, device=3).busy == 10 * US
    assert recorded(made, device=None).busy == 15 * US


def test_a_header_alone_shows_a_device_without_work() -> None:
    trace = columns(Kineto(gpu=True))
    assert described_devices(trace) == (0,)
    assert device_indices(trace) == ()


work = st.tuples(
    st.integers(0, 200),
    st.integers(0, 60),
    st.sampled_from(("gemm", NCCL, "Memcpy")),
    st.integers(0, 3),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(work, min_size=1, max_size=15), st.integers(-20, 150), st.integers(0, 200))
def test_parts_always_sum_to_the_range(
    works: list[tuple[int, int, str, int]], lo: int, length: int
) -> None:
    made = Kineto()
    for ts, dur, name, stream in works:
        cat = "gpu_memcpy" if name == "Memcpy" else "kernel"
        made.kernel(name, ts, dur, stream=stream, cat=cat)
    time = device_time(columns(made), 0, Range(start=lo * US, end=(lo + length) * US))
    parts = (time.compute, time.exposed_communication, time.exposed_memory, time.idle)
    assert min(parts) >= 0
    assert sum(parts) == time.range.length
    assert time.busy == time.range.length - time.idle
