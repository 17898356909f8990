"""A device's clock that is ahead of the host's shows where a wait returns before its work ends."""

import pytest

from tests.analysis.traces import columns
from tests.kineto import HOST, Kineto
from workbench.analysis.launches import join_launches


def loop(*, ahead: float, copies: bool = False) -> Kineto:
    """Two kernels of 10 µs, each begun 5 µs after its call; then the host waits.

    Truly the second ends at 125 and the wait returns at 130. The device's stamps are ``ahead``.
    """
    trace = Kineto(gpu=True)
    for number, at in enumerate((0, 110)):
        trace.launched("gemm", call=(at, 3), kernel=(at + 5 + ahead, 10), correlation=number + 1)
    if copies:
        name = "Memcpy DtoH (Device -> Pageable)"
        trace.runtime("cudaMemcpyAsync", 140, 30, correlation=9)
        trace.kernel(name, 150 + ahead, 15, correlation=9, cat="gpu_memcpy")
    else:
        trace.runtime("cudaDeviceSynchronize", 114, 16, correlation=50)
    return trace


@pytest.mark.parametrize("copies", [False, True], ids=["synchronize", "copy to pageable memory"])
@pytest.mark.parametrize(
    ("ahead", "offset_ns"),
    [
        (0, 0),
        (20, 0),  # ends 15 µs after the wait: clocks of real traces drift by up to 23
        (50, -45_000),  # ends 45 µs after the wait has returned: by so much it is ahead at least
        (900, -895_000),
    ],
)
def test_work_that_ends_after_the_wait_for_it_was_stamped_late(
    ahead: float, offset_ns: int, copies: bool
) -> None:
    """Waits return 5 µs after the work: 130 after 125, and 170 after 165."""
    launches = join_launches(columns(loop(ahead=ahead, copies=copies)))
    assert launches.clock_offset == {0: offset_ns}
    assert launches.clock_ok == {0: True}


def test_a_clock_ahead_by_more_than_a_millisecond_is_no_offset() -> None:
    """+5 ms: every kernel would have waited 5 ms in its queue beside an idle device."""
    launches = join_launches(columns(loop(ahead=5_000)))
    assert launches.clock_offset == {0: 0}
    assert launches.clock_ok == {0: False}


def test_the_correction_never_puts_work_before_its_launch() -> None:
    """One kernel begins 12 µs after its call, the other ends 45 late: 10 can go, 2 must stay."""
    trace = loop(ahead=50)
    trace.launched("drifted", call=(40, 3), kernel=(52, 2), correlation=7)
    assert join_launches(columns(trace)).clock_offset == {0: -10_000}


def test_a_wait_of_one_device_says_nothing_about_another() -> None:
    """With two devices nobody knows which of them the synchronize waited for."""
    trace = loop(ahead=0)
    trace.launched("gemm", call=(20, 3), kernel=(25, 900), correlation=20, device=1)
    assert join_launches(columns(trace)).clock_offset == {0: 0, 1: 0}


def test_work_launched_behind_the_wait_may_end_after_it() -> None:
    trace = loop(ahead=0)
    trace.launched("next", call=(135, 3), kernel=(140, 900), correlation=20)
    assert join_launches(columns(trace)).clock_offset == {0: 0}


def test_another_process_waits_for_its_own_work() -> None:
    trace = loop(ahead=0)
    trace.runtime("cudaLaunchKernel", 20, 3, correlation=20)["pid"] = HOST + 1
    trace.kernel("other", 25, 900, correlation=20)
    assert join_launches(columns(trace)).clock_offset == {0: 0}
