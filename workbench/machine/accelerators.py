"""Accelerators that torch could use, without opening a context on any of them."""

from dataclasses import dataclass
from typing import Any

from workbench.machine.nvidia import nvidia_devices


@dataclass(frozen=True, kw_only=True)
class DeviceInfo:
    """One accelerator; ``None`` where it cannot be asked without initialising it."""

    index: int
    type: str
    """cuda, hip, xpu, mps, mtia, npu and so on."""
    name: str | None
    arch: str | None
    memory_bytes: int | None
    free_bytes: int | None = None
    processes: int | None = None


def devices() -> tuple[DeviceInfo, ...]:
    """The accelerators of torch's current type; empty without torch or without any.

    Properties come from the vendor's management library, or from torch where this process has
    initialised the device anyway.
    """
    try:
        import torch
    except ImportError:
        return ()
    if torch.cuda._is_compiled():
        return _hip(torch) if torch.version.hip else _cuda(torch)
    return _other(torch)


def _cuda(torch: Any) -> tuple[DeviceInfo, ...]:
    count = torch.cuda.device_count()
    known = nvidia_devices() or ()
    if len(known) != count:
        return _initialised(torch.cuda, "cuda", count)
    return tuple(
        DeviceInfo(
            index=index,
            type="cuda",
            name=device.name,
            arch=device.arch,
            memory_bytes=device.memory_bytes,
            free_bytes=device.free_bytes,
            processes=device.processes,
        )
        for index, device in enumerate(known)
    )


def _hip(torch: Any) -> tuple[DeviceInfo, ...]:
    return _initialised(torch.cuda, "hip", torch.cuda.device_count())


def _other(torch: Any) -> tuple[DeviceInfo, ...]:
    current = torch.accelerator.current_accelerator()
    if current is None or not torch.accelerator.is_available():
        return ()
    room = getattr(torch, current.type, None)
    return _initialised(room, current.type, torch.accelerator.device_count())


def _initialised(room: Any, kind: str, count: int) -> tuple[DeviceInfo, ...]:
    """Properties by torch itself, only if this process uses the devices already."""
    started = getattr(room, "is_initialized", None)
    ask = getattr(room, "get_device_properties", None)
    if started is None or ask is None or not started():
        return tuple(
            DeviceInfo(index=index, type=kind, name=None, arch=None, memory_bytes=None)
            for index in range(count)
        )
    return tuple(_properties(ask(index), kind, index) for index in range(count))


def _properties(found: Any, kind: str, index: int) -> DeviceInfo:
    arch = getattr(found, "gcnArchName", None)
    if arch is None and kind == "cuda" and hasattr(found, "major"):
        arch = f"sm_{found.major}{found.minor}"
    memory = getattr(found, "total_memory", None)
    return DeviceInfo(
        index=index,
        type=kind,
        name=getattr(found, "name", None),
        arch=None if arch is None else str(arch),
        memory_bytes=None if memory is None else int(memory),
    )
