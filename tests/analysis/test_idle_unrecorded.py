"""A device that seems idle although it must have worked on something that the trace lacks.

One millisecond (UNRECORDED_NS) is far more than a device takes to begin what was launched, or a
call to return when the device is done. The first kernel works in [50, 100) us.
"""

import pytest

from tests.analysis.idle_cases import causes, explained, gap
from tests.analysis.traces import columns
from tests.kineto import Kineto
from workbench.analysis.launches import join_launches
from workbench.analysis.unrecorded_work import unexplained_waits

MS = 1_000


def copy_in_between() -> Kineto:
    """A kernel launched at 60 begins at 5,100; another thread copies in [2,000, 2,010)."""
    made = gap(call=(60, 5), until=5 * MS + 100)
    made.launched("copy", call=(1_900, 5), kernel=(2_000, 10), correlation=3, stream=30, tid=300)
    return made


def test_work_that_waits_meanwhile_shows_that_the_device_was_busy() -> None:
    """The copy was launched late, but the kernel of stream 7 could have begun at 100."""
    idle = explained(copy_in_between())
    assert causes(idle) == {"unknown": 1_900 + 3_090}
    assert idle.unrecorded == 4_990 * 1_000


def test_waiting_for_less_than_a_millisecond_excuses_no_host() -> None:
    """The kernel launched at 60 begins at 900; up to the copy's launch the host decides."""
    made = gap(call=(60, 5), until=900)
    made.launched("copy", call=(480, 5), kernel=(500, 10), correlation=3, stream=30, tid=300)
    assert causes(explained(made)) == {"host_other": 380, "launch": 20, "kernel_gap": 390}


def test_only_the_time_after_the_launch_is_unseen() -> None:
    """The host is late until 180; the kernel launched then begins 3 ms after its call."""
    made = gap(call=(180, 10), until=3_190)
    assert causes(explained(made)) == {"host_other": 80, "launch": 10, "unknown": 3_000}


def test_a_call_that_lasts_on_waited_for_something_unseen() -> None:
    """The device is done at 100, the call returns at 3,000: removing it would save nothing.

    The host had waited since 60, so 40 us of what it does behind the call come late because of it.
    """
    made = gap(call=(3_100, 10), until=3_120)
    made.runtime("cudaDeviceSynchronize", 60, 2_940, correlation=9)
    idle = explained(made)
    assert causes(idle) == {"unknown": 2_900, "synchronization": 40, "host_other": 60, "launch": 20}
    assert idle.unrecorded == 2_900 * 1_000


def test_what_another_thread_copies_meanwhile_is_not_what_the_call_waits_for() -> None:
    """The gap before the copy is unseen work as well, because the call lasts on behind it.

    The 100 us behind the call come late: the host had waited since 60.
    """
    made = gap(call=(3_100, 10), until=3_120)
    made.runtime("cudaDeviceSynchronize", 60, 2_940, correlation=9)
    made.launched("copy", call=(480, 5), kernel=(500, 10), correlation=3, stream=30, tid=300)
    found = causes(explained(made))
    assert found == {"unknown": 380 + 2_490, "synchronization": 100, "launch": 20 + 20}


def test_a_call_that_waits_for_another_device_is_explained_by_it() -> None:
    """Device 1 works until 2,990: the first device is idle because the host waits for the other."""
    made = gap(call=(3_100, 10), until=3_120)
    made.launched("elsewhere", call=(46, 2), kernel=(55, 2_935), correlation=3, device=1)
    made.runtime("cudaDeviceSynchronize", 60, 2_940, correlation=9)
    found = causes(explained(made))
    assert found["synchronization"] == 2_900 + 40
    assert "unknown" not in found


@pytest.mark.parametrize("name", ["cudaEventSynchronize", "hipEventSynchronize"])
def test_a_thread_that_sleeps_on_an_event_may_wake_late(name: str) -> None:
    """With busy processors that takes milliseconds (6.8 ms in a trace of torch 1.8)."""
    made = gap(call=(3_100, 10), until=3_120)
    made.runtime(name, 60, 2_940, correlation=9)
    assert causes(explained(made))["synchronization"] == 2_900 + 40


def test_unseen_work_beside_a_copy_is_counted_for_the_trust() -> None:
    trace = columns(copy_in_between())
    waits, extent = unexplained_waits(trace, join_launches(trace), 0, all_of_it=True)
    assert sorted(waits.tolist()) == [1_900_000, 3_090_000]
    assert extent == 5_065_000, "from 45 us, where the first call ended, to 5,110"
    _, recorded = unexplained_waits(trace, join_launches(trace), 0, all_of_it=False)
    assert recorded == 5_060_000, "from 50 us, where the first kernel began"
