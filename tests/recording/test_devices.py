"""What is recorded is decided without opening a device."""

import pytest
import torch
from torch.profiler import ProfilerActivity

from workbench.recording.devices import activities, device_in_use


def test_a_cpu_workload_records_the_host_alone() -> None:
    assert activities("cpu") == activities(None) == [ProfilerActivity.CPU]


def test_a_device_that_this_build_cannot_record_is_left_out() -> None:
    """The assertion that torch would raise ('no activities') never reaches a user."""
    if ProfilerActivity.CUDA in torch.profiler.supported_activities():
        assert activities("cuda") == [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    else:
        assert activities("cuda") == [ProfilerActivity.CPU]


def test_only_a_device_that_is_initialised_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_in_use() == ("cuda" if torch.cuda.is_initialized() else None)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert device_in_use() == "cuda"
