"""NVIDIA devices by the driver's management library, which opens no context on them."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class NvidiaDevice:
    """What the driver says about one device that this process may see."""

    name: str
    arch: str | None
    memory_bytes: int | None
    free_bytes: int | None
    processes: int | None
    """Processes with a context on it; ``None`` where the driver does not tell."""
    clock_mhz: float | None = None
    temperature_c: float | None = None


@dataclass(frozen=True, kw_only=True)
class NvidiaSample:
    """What the driver says that one device does now; ``None`` where it does not tell."""

    device: int
    """Place among the devices that this process may see, as in ``cuda:0``."""
    utilization_percent: float | None
    """Of the driver's last sample period (at most a second), with any kernel running."""
    memory_utilization_percent: float | None
    """Of the same period, with its memory read or written."""
    memory_used_bytes: int | None
    """By all processes."""
    power_w: float | None
    clock_mhz: float | None
    temperature_c: float | None


class NvidiaSampler:
    """Asks the driver again and again between ``open`` and ``close``, and opens no context."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._nvml: Any = None
        self._handles: list[Any] = []

    def open(self) -> None:
        """Find the devices; without library or driver there are none to be sampled."""
        self._nvml = self._stack.enter_context(_nvml())
        if self._nvml is not None:
            chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
            try:
                self._handles = _visible(self._nvml, chosen)
            except self._nvml.NVMLError:  # a driver that was taken away since it was opened
                self._handles = []

    def read(self) -> list[NvidiaSample]:
        """One sample of each device; empty where nobody can be asked."""
        return [_sample(self._nvml, *found) for found in enumerate(self._handles)]

    def close(self) -> None:
        """Ask no more; doing it twice is fine."""
        self._handles = []
        self._stack.close()


def nvidia_devices() -> tuple[NvidiaDevice, ...] | None:
    """The devices that ``CUDA_VISIBLE_DEVICES`` leaves, in its order or the driver's.

    ``None`` when the management library or the driver is not there, so that nobody knows.
    """
    with _nvml() as nvml:
        if nvml is None:
            return None
        handles = _visible(nvml, os.environ.get("CUDA_VISIBLE_DEVICES"))
        return tuple(_describe(nvml, handle) for handle in handles)


def driver_version() -> str | None:
    """Version of the NVIDIA driver, or ``None``."""
    with _nvml() as nvml:
        if nvml is None:
            return None
        version = _asked(nvml, nvml.nvmlSystemGetDriverVersion)
        return None if version is None else str(version)


@contextmanager
def _nvml() -> Iterator[Any]:
    try:
        import pynvml
    except ImportError:
        yield None
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def _visible(nvml: Any, chosen: str | None) -> list[Any]:
    """Handles as CUDA would count them: it stops at the first entry that it does not know."""
    count = nvml.nvmlDeviceGetCount()
    if chosen is None:
        return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    handles = []
    for entry in (part.strip() for part in chosen.split(",")):
        handle = _handle(nvml, entry, count)
        if handle is None:
            break
        handles.append(handle)
    return handles


def _handle(nvml: Any, entry: str, count: int) -> Any:
    if entry.isdecimal():
        return nvml.nvmlDeviceGetHandleByIndex(int(entry)) if int(entry) < count else None
    if not entry.startswith(("GPU-", "MIG-")):
        return None
    return _asked(nvml, nvml.nvmlDeviceGetHandleByUUID, entry.encode())


def _describe(nvml: Any, handle: Any) -> NvidiaDevice:
    capability = _asked(nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle)
    memory = _asked(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    processes = _asked(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle)
    return NvidiaDevice(
        name=str(_asked(nvml, nvml.nvmlDeviceGetName, handle) or "NVIDIA device"),
        arch=None if capability is None else f"sm_{capability[0]}{capability[1]}",
        memory_bytes=None if memory is None else int(memory.total),
        free_bytes=None if memory is None else int(memory.free),
        processes=None if processes is None else len(processes),
        clock_mhz=_number(nvml, "nvmlDeviceGetClockInfo", handle, _SM_CLOCK),
        temperature_c=_number(nvml, "nvmlDeviceGetTemperature", handle, _ON_DIE),
    )


def _sample(nvml: Any, device: int, handle: Any) -> NvidiaSample:
    busy = _asked(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
    memory = _asked(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    power = _number(nvml, "nvmlDeviceGetPowerUsage", handle)
    return NvidiaSample(
        device=device,
        utilization_percent=None if busy is None else float(busy.gpu),
        memory_utilization_percent=None if busy is None else float(busy.memory),
        memory_used_bytes=None if memory is None else int(memory.used),
        power_w=None if power is None else power / 1000,
        clock_mhz=_number(nvml, "nvmlDeviceGetClockInfo", handle, _SM_CLOCK),
        temperature_c=_number(nvml, "nvmlDeviceGetTemperature", handle, _ON_DIE),
    )


_SM_CLOCK = 1
"""``NVML_CLOCK_SM``."""
_ON_DIE = 0
"""``NVML_TEMPERATURE_GPU``."""


def _number(nvml: Any, question: str, *arguments: Any) -> float | None:
    ask = getattr(nvml, question, None)
    value = None if ask is None else _asked(nvml, ask, *arguments)
    return None if value is None else float(value)


def _asked(nvml: Any, question: Any, *arguments: Any) -> Any:
    """The answer, or ``None`` where this driver or device gives none."""
    try:
        return question(*arguments)
    except nvml.NVMLError:
        return None
