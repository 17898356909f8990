"""Launches of the window's steps, and whether the device had run out of work."""

from tests.analysis.traces import columns
from tests.kineto import Kineto
from workbench.analysis.launches import join_launches
from workbench.analysis.queue import LaunchStatistics, launch_statistics
from workbench.analysis.steps import find_steps


def statistics(made: Kineto, device: int = 0) -> LaunchStatistics | None:
    trace = columns(made)
    launches = join_launches(trace)
    return launch_statistics(trace, find_steps(trace, launches), launches, device)


def test_a_host_that_is_late_launches_into_an_empty_queue() -> None:
    """Each kernel is done before the next call ends."""
    made = Kineto()
    for i in range(4):
        made.launched("k", call=(100 * i, 5), kernel=(100 * i + 10, 20), correlation=i + 1)
    found = statistics(made)
    assert found == LaunchStatistics(
        count=4, per_step=None, into_empty_queue_share=1.0, queue_median=1.0
    )


def test_a_host_that_runs_ahead_fills_the_queue() -> None:
    """Five launches by 45 us, kernels of 100 us: only the first found nothing unfinished.

    At the ends of the calls 1, 1, 2, 3 and 4 kernels were launched and not begun: the first one
    begins at 8, after its own call ended.
    """
    made = Kineto()
    for i in range(5):
        made.launched("k", call=(10 * i, 5), kernel=(8 + 100 * i, 100), correlation=i + 1)
    found = statistics(made)
    assert found is not None
    assert (found.into_empty_queue_share, found.queue_median) == (0.2, 2.0)


def test_work_on_any_stream_of_the_device_keeps_the_queue_full() -> None:
    """A long copy on another stream, launched earlier, is still running."""
    made = Kineto()
    made.runtime("cudaMemcpyAsync", 0, 2, correlation=9)
    made.kernel("Memcpy HtoD (Pinned -> Device)", 3, 500, correlation=9, stream=9, cat="gpu_memcpy")
    made.launched("k", call=(100, 5), kernel=(110, 20), correlation=1)
    found = statistics(made)
    assert found is not None
    assert found.into_empty_queue_share == 0.0
    assert found.count == 1, "copies are no kernels"


def test_work_of_another_device_does_not() -> None:
    made = Kineto()
    made.launched("long", call=(0, 2), kernel=(3, 500), correlation=9, device=1)
    made.launched("k", call=(100, 5), kernel=(110, 20), correlation=1)
    found = statistics(made)
    assert found is not None
    assert found.into_empty_queue_share == 1.0


def test_work_from_before_the_capture_counts_as_launched_earlier() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 5)
    made.kernel("pre-roll", 1, 500, correlation=99)
    made.launched("k", call=(100, 5), kernel=(510, 20), correlation=1)
    found = statistics(made)
    assert found is not None
    assert found.into_empty_queue_share == 0.0


def test_a_graph_of_a_thousand_kernels_is_one_launch() -> None:
    """T07: not launch-bound, whatever the number of kernels."""
    made = Kineto()
    for number, ts in ((1, 0), (2, 2_000)):
        made.step(number, ts, 2_000)
        made.runtime("cudaGraphLaunch", ts + 1, 5, correlation=number)
        for i in range(1_000):
            made.kernel("k", ts + 10 + i, 1, correlation=number)
    found = statistics(made)
    assert found is not None
    assert (found.count, found.per_step) == (2, 1.0)


def test_only_launches_inside_complete_steps_count() -> None:
    made = Kineto()
    made.launched("before", call=(0, 5), kernel=(10, 20), correlation=9)
    for number, ts in ((1, 100), (2, 200)):
        made.step(number, ts, 100)
        made.launched("k", call=(ts + 10, 5), kernel=(ts + 20, 20), correlation=number)
        made.launched("k", call=(ts + 50, 5), kernel=(ts + 60, 20), correlation=10 + number)
    made.launched("after", call=(400, 5), kernel=(410, 20), correlation=19)
    found = statistics(made)
    assert found is not None
    assert (found.count, found.per_step) == (4, 2.0)


def test_clocks_that_do_not_compare_leave_the_queue_unmeasured() -> None:
    made = Kineto()
    made.launched("k", call=(5_000, 5), kernel=(300, 10), correlation=3)
    found = statistics(made)
    assert found is not None
    assert (found.count, found.into_empty_queue_share, found.queue_median) == (1, None, None)


def test_without_launch_records_nothing_is_measured() -> None:
    made = Kineto()
    made.kernel("k", 0, 10, correlation=1)
    assert statistics(made) is None
