"""Which devices are there, without touching them?"""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from workbench.machine import accelerators, devices
from workbench.machine.nvidia import driver_version, nvidia_devices

GB = 10**9


class FakeNvml(ModuleType):
    """A driver that knows two devices, one of which does not tell its processes."""

    class NVMLError(Exception):
        """What the library raises for everything."""

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        answers = {
            "nvmlSystemGetDriverVersion": lambda: "580.82",
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetHandleByUUID": lambda uuid: {b"GPU-aa": 0, b"GPU-bb": 1}[uuid],
            "nvmlDeviceGetName": lambda handle: ("NVIDIA A100", "NVIDIA T4")[handle],
            "nvmlDeviceGetCudaComputeCapability": lambda handle: ((8, 0), (7, 5))[handle],
            "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(
                total=(80, 16)[handle] * GB, free=(60, 16)[handle] * GB
            ),
            "nvmlDeviceGetComputeRunningProcesses": self.processes,
        }
        if name not in answers:
            raise AttributeError(name)
        return answers[name]

    def processes(self, handle: int) -> list[int]:
        if handle == 1:
            raise self.NVMLError("not supported")
        return [4711]


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fake


@pytest.fixture
def cuda_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch built for CUDA that must not be initialised."""

    def touched(*_: object) -> None:
        raise AssertionError("looking must not initialise the device")

    monkeypatch.setattr(torch.cuda, "_is_compiled", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "_lazy_init", touched)


def test_cuda_devices_are_described_by_the_driver_alone(nvml: FakeNvml, cuda_torch: None):
    first, second = devices()
    assert (first.type, first.name, first.arch) == ("cuda", "NVIDIA A100", "sm_80")
    assert (first.memory_bytes, first.free_bytes, first.processes) == (80 * GB, 60 * GB, 1)
    assert (second.index, second.name, second.arch) == (1, "NVIDIA T4", "sm_75")
    assert second.processes is None  # not told is not zero
    assert not torch.cuda.is_initialized()
    assert nvml.open == 0


def test_without_the_management_library_only_the_number_is_known(
    monkeypatch: pytest.MonkeyPatch, cuda_torch: None
):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found = devices()
    assert [device.name for device in found] == [None, None]
    assert driver_version() is None


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        ("1", ["NVIDIA T4"]),
        ("1,0", ["NVIDIA T4", "NVIDIA A100"]),
        ("GPU-bb", ["NVIDIA T4"]),
        ("0,7,1", ["NVIDIA A100"]),  # CUDA stops at the first that it does not know
        ("-1", []),
        ("", []),
    ],
)
def test_only_visible_devices_count(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, visible: str, names: list[str]
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [device.name for device in nvidia_devices() or ()] == names


def test_no_driver_means_nobody_knows(monkeypatch: pytest.MonkeyPatch):
    fake = FakeNvml()

    def missing() -> None:
        raise fake.NVMLError("library not found")

    monkeypatch.setattr(fake, "nvmlInit", missing, raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    assert nvidia_devices() is None


def test_an_initialised_device_is_asked_through_torch():
    room = SimpleNamespace(
        is_initialized=lambda: True,
        get_device_properties=lambda index: SimpleNamespace(
            name="Instinct MI300X", gcnArchName="gfx942", total_memory=192 * GB
        ),
    )
    (found,) = accelerators._initialised(room, "hip", 1)
    assert (found.name, found.arch, found.memory_bytes) == ("Instinct MI300X", "gfx942", 192 * GB)


def test_a_cpu_build_of_torch_has_none_and_stays_untouched():
    assert devices() == () or torch.accelerator.is_available()
    assert not torch.cuda.is_initialized()
