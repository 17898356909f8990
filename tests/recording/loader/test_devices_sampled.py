"""Devices are sampled through the driver, beside processes and host; what is unknown is null."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from tests.recording.loader.datasets import Stages
from tests.recording.loader.driving import take
from workbench.analysis.loader_evidence import loader_system
from workbench.analysis.stalls.crowding import crowded_spans
from workbench.recording.loader.recorder import LoaderRecorder
from workbench.store.loader import SYSTEM_COLUMNS, read_system

GPU = [name for name in SYSTEM_COLUMNS if name.startswith("gpu_")]


class Driver(ModuleType):
    """Two devices; the second tells nothing but its memory."""

    class NVMLError(Exception):
        """What the library raises for everything."""

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.opened = self.asked = 0

    def nvmlInit(self) -> None:  # noqa: N802 - the library's names
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.opened -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(total=80, free=50, used=30 + handle)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def answer(handle: int, *_: int) -> Any:
            self.asked += 1
            if handle == 1:
                raise self.NVMLError("not supported")
            return {
                "nvmlDeviceGetName": "GPU",
                "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=0, memory=12),
                "nvmlDeviceGetPowerUsage": 250_500,
                "nvmlDeviceGetClockInfo": 1_410,
                "nvmlDeviceGetTemperature": 61,
                "nvmlDeviceGetCudaComputeCapability": (8, 0),
                "nvmlDeviceGetComputeRunningProcesses": [],
            }[name]

        return answer


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    fake = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fake


def sampled(folder: Path) -> Any:
    """The system's samples of a short loop, read back from their file."""
    with LoaderRecorder() as recorder:
        list(take(recorder, DataLoader(Stages(8, sleep=0.005), 4)))
    recorder.write(folder, [])
    found = read_system(folder)
    assert found is not None
    return found


def test_every_device_has_rows_of_its_own(tmp_path: Path, driver: Driver) -> None:
    system, about = sampled(tmp_path)
    rows = system[system["process"] == "device"]
    assert set(rows["device"]) == {0, 1}
    first = rows[rows["device"] == 0].iloc[0]
    # 250500 mW; idle is 0, and measured.
    assert [first[name] for name in GPU] == [0, 12, 30, 250.5, 1410, 61]
    assert about["gpus"] == ["GPU", "NVIDIA device"]
    assert len(rows) >= 4  # at the start and at the end
    assert driver.opened == 0  # what was opened was closed


def test_what_a_device_does_not_tell_is_null_and_never_0(tmp_path: Path, driver: Driver) -> None:
    system, _ = sampled(tmp_path)
    second = system[system["device"] == 1].iloc[0]
    assert second["gpu_memory_used_bytes"] == 31
    assert all(second.isna()[name] for name in GPU if name != "gpu_memory_used_bytes")
    others = system[system["process"] != "device"]
    assert others[GPU].isna().all(axis=None)
    assert driver.asked


def test_only_the_devices_that_the_process_may_see(
    tmp_path: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Device 1 of the machine is cuda:0 here."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    system, _ = sampled(tmp_path)
    rows = system[system["process"] == "device"]
    assert set(rows["device"]) == {0}
    assert set(rows["gpu_memory_used_bytes"]) == {31}
    assert driver.opened == 0


@pytest.mark.parametrize("missing", ["library", "driver"])
def test_without_library_or_driver_the_columns_are_null(
    tmp_path: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    if missing == "library":
        monkeypatch.setitem(sys.modules, "pynvml", None)
    else:

        def broken() -> None:
            raise driver.NVMLError("driver not loaded")

        monkeypatch.setattr(driver, "nvmlInit", broken)
    system, about = sampled(tmp_path)
    assert set(system["process"]) == {"host", "training"}
    assert system[[*GPU, "device"]].isna().all(axis=None)
    assert about["gpus"] == []


def test_sampling_opens_no_context(
    tmp_path: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touched(*_: object, **__: object) -> None:
        raise AssertionError("sampling must not initialise the device")

    monkeypatch.setattr(torch.cuda, "_lazy_init", touched)
    monkeypatch.setattr(torch.cuda, "init", touched)
    system, _ = sampled(tmp_path)
    assert (system["process"] == "device").any()
    assert not torch.cuda.is_initialized()
    assert driver.opened == 0


def test_devices_are_no_processes_to_the_rules(tmp_path: Path, driver: Driver) -> None:
    system, about = sampled(tmp_path)
    rest = system[system["process"] != "device"]
    assert loader_system(system, about) == loader_system(rest, about)
    assert str(crowded_spans(system, about)) == str(crowded_spans(rest, about))
    assert driver.asked
