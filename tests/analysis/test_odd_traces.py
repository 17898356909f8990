"""No trace is too odd: each gives numbers or nothing, never an error."""

import time

import pytest

from tests.analysis.traces import columns
from tests.kineto import Kineto
from workbench.analysis.device_time import device_time
from workbench.analysis.devices import device_indices
from workbench.analysis.host import host_breakdown
from workbench.analysis.input_wait import input_wait
from workbench.analysis.launches import join_launches
from workbench.analysis.steps import find_steps
from workbench.analysis.trust import Trust, check_trust
from workbench.analysis.window import foreign_share, recording, window


def everything(made: Kineto) -> Trust:
    """Run every analysis of this room's first questions."""
    trace = columns(made)
    launches = join_launches(trace)
    steps = find_steps(trace, launches)
    for device in (*device_indices(trace), 99):
        held = window(trace, device, steps, launches)
        foreign_share(trace, device, held, steps, launches)
        for span in (held, recording(trace, device)):
            if span is not None:
                assert device_time(trace, device, span).idle >= 0
    host = window(trace, None, steps, launches)
    if host is not None:
        parts = host_breakdown(trace, host, steps)
        assert sum(part or 0 for part in parts.values()) == host.length
        input_wait(trace, host, steps)
    return check_trust(trace, launches, steps)


def test_an_empty_trace() -> None:
    assert everything(Kineto()).ok


def test_only_steps() -> None:
    made = Kineto()
    made.step(1, 0, 100)
    made.step(2, 100, 100)
    assert everything(made).ok


def test_only_a_device() -> None:
    made = Kineto()
    made.kernel("k", 0, 10)
    made.kernel("k", 50, 10)
    assert not everything(made).ok


def test_only_launches() -> None:
    made = Kineto()
    made.step(1, 0, 100)
    made.runtime("cudaLaunchKernel", 10, 5, correlation=1)
    assert not everything(made).ok


def test_work_of_no_length() -> None:
    made = Kineto()
    made.launched("k", call=(0, 5), kernel=(10, 0), correlation=1)
    assert everything(made).ok


@pytest.mark.parametrize(
    ("category", "runtime"),
    [
        ("mtia_ccp_events", "mtia_runtime"),
        ("mlu_kernel", "mlu_runtime"),
        ("mlu_memcpy", "mlu_runtime"),
        ("npu_kernel", "npu_runtime"),
        ("hpu_op", "hpu_runtime"),
        ("kernel", "xpu_runtime"),
        ("something new", "privateuse1_runtime"),
    ],
)
def test_devices_of_every_vendor(category: str, runtime: str) -> None:
    made = Kineto()
    made.step(1, 0, 100)
    made.event("launch", runtime, 10, 5, args={"correlation": 1})
    made.kernel("work", 20, 30, correlation=1, cat=category)
    everything(made)


def test_thousands_of_streams_take_no_longer_than_seconds() -> None:
    made = Kineto()
    for i in range(6000):
        made.launched("k", call=(i, 1), kernel=(i + 10, 100), correlation=i + 1, stream=i)
    began = time.process_time()
    assert everything(made).ok
    assert time.process_time() - began < 5
