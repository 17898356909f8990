"""A blocking call costs the device what the host does late because it had to wait."""

import pytest

from tests.analysis.idle_cases import causes, explained, gap
from tests.analysis.traces import columns
from tests.kineto import Kineto


def waiting(*, name: str = "cudaStreamSynchronize", call: tuple[float, float] = (60, 50)) -> Kineto:
    """The host waits in a call while the device works until 100; the next launch is at 180."""
    made = gap()
    made.runtime(name, *call, correlation=9)
    return made


def test_the_call_and_as_much_host_time_behind_it_as_the_host_had_waited() -> None:
    """It waited from 60 to 100: of the 70 us between 110 and 180, 40 count, the rest is host."""
    assert causes(explained(waiting())) == {
        "synchronization": 10 + 40,
        "host_other": 30,
        "launch": 20,
    }


def test_a_short_wait_excuses_little() -> None:
    """It waited 5 us; logging for 70 us behind ``.item()`` is host time."""
    found = causes(explained(waiting(call=(95, 15))))
    assert found == {"synchronization": 10 + 5, "host_other": 65, "launch": 20}


def test_a_call_that_began_when_the_device_was_idle_excuses_nothing() -> None:
    found = causes(explained(waiting(call=(105, 5))))
    assert found == {"synchronization": 5, "host_other": 75, "launch": 20}


def test_a_host_blocked_while_the_device_works_costs_nothing() -> None:
    """The second kernel was queued before: there is no gap but the spacing in the device."""
    made = Kineto(gpu=True)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.launched("second", call=(46, 5), kernel=(101, 99), correlation=2)
    made.runtime("cudaStreamSynchronize", 55, 150, correlation=9)
    assert causes(explained(made)) == {"kernel_gap": 1}


def test_the_next_launch_of_anything_ends_the_excuse() -> None:
    """A launch at 120 on the same thread, to another device."""
    made = waiting()
    made.launched("elsewhere", call=(120, 5), kernel=(140, 5), correlation=3, device=1)
    found = causes(explained(made))
    assert found == {"synchronization": 10 + 10, "host_other": 60, "launch": 20}


def test_a_launch_of_another_thread_does_not_end_it() -> None:
    made = waiting()
    made.launched("other", call=(120, 5), kernel=(140, 5), correlation=3, device=1, tid=555)
    assert causes(explained(made))["synchronization"] == 50


def test_the_next_piece_with_a_cause_of_its_own_ends_it() -> None:
    made = waiting()
    made.loader(130, 10)
    found = causes(explained(made))
    assert found == {"synchronization": 10 + 20, "input": 10, "host_other": 40, "launch": 20}


def test_operators_and_python_behind_the_call_are_excused_too() -> None:
    """Of ``.item()`` only the call blocks; what follows in the operator is late because of it."""
    made = gap()
    made.op("aten::item", 55, 60)
    made.runtime("cudaStreamSynchronize", 60, 50, correlation=9)
    found = causes(explained(made))
    assert found == {"synchronization": 50, "host_other": 30, "launch": 20}


@pytest.mark.parametrize(
    "name",
    [
        "cudaDeviceSynchronize",
        "cudaEventSynchronize",
        "hipStreamSynchronize",
        "hipDeviceSynchronize",
        "cuCtxSynchronize",
        "cudaMemcpy",
        "hipMemcpyWithStream",
        "cnrtQueueSync",
    ],
)
def test_blocking_calls_of_all_vendors(name: str) -> None:
    assert causes(explained(waiting(name=name)))["synchronization"] == 50


@pytest.mark.parametrize("name", ["cudaStreamWaitEvent", "cudaEventQuery", "cudaEventRecord"])
def test_calls_that_do_not_block(name: str) -> None:
    assert "synchronization" not in causes(explained(waiting(name=name)))


@pytest.mark.parametrize(
    ("copy", "blocks"),
    [
        ("Memcpy DtoH (Device -> Pageable)", True),
        ("Memcpy HtoD (Pageable -> Device)", True),
        ("Memcpy DtoH (Device -> Pinned)", False),
        ("Memcpy DtoD (Device -> Device)", False),
    ],
)
def test_an_asynchronous_copy_blocks_when_its_memory_is_pageable(
    copy: str, *, blocks: bool
) -> None:
    """The copy itself ends at 110 inside its call [60, 120), then the device is idle."""
    made = gap()
    made.runtime("cudaMemcpyAsync", 60, 60, correlation=3)
    made.kernel(copy, 100, 10, correlation=3, cat="gpu_memcpy")
    found = causes(explained(made))
    assert found.get("synchronization", 0) == (10 + 50 if blocks else 0)


def test_the_piece_names_the_call_and_the_operator_around_it() -> None:
    made = gap()
    made.op("aten::nonzero", 55, 60)
    made.runtime("cudaStreamSynchronize", 60, 50, correlation=9)
    trace = columns(made)
    pieces = explained(made).pieces
    first = {
        "host": trace.names[trace.events.name[pieces.host[0]]],
        "operator": trace.names[trace.events.name[pieces.operator[0]]],
        "next_work": trace.names[trace.events.name[pieces.next_work[0]]],
        "launch": trace.names[trace.events.name[pieces.launch[0]]],
    }
    assert first == {
        "host": "cudaStreamSynchronize",
        "operator": "aten::nonzero",
        "next_work": "second",
        "launch": "cudaLaunchKernel",
    }
