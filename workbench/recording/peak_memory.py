"""The most memory that a stretch of steps held: the process, its loader's workers, the device."""

import multiprocessing
from contextlib import suppress
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
_FORGET_PEAK = Path("/proc/self/clear_refs"), "5"


class MemoryProbe:
    """Peak memory of this process and of a device, from ``start`` until ``read``.

    Args:
        device: A ``torch.device``, or ``None``.
    """

    def __init__(self, device: Any) -> None:
        self._module = _device_module(device)
        self._device = device
        self._exact = False

    def start(self) -> None:
        """Forget the peaks so far."""
        place, word = _FORGET_PEAK
        with suppress(OSError):
            place.write_text(word)
            self._exact = True
        if self._module is not None:
            self._module.reset_peak_memory_stats(self._device)

    def read(self) -> dict[str, int | None]:
        """Bytes by name; ``None`` where the system does not tell."""
        device = None
        if self._module is not None:
            device = int(self._module.max_memory_allocated(self._device))
        return {
            "peak_rss_bytes": _status("VmHWM") if self._exact else None,
            "workers_bytes": children_bytes(),
            "device_peak_bytes": device,
        }


def children_bytes() -> int | None:
    """Memory of the workers that Python started here, shared parts counted in parts; 0 without any.

    Other children, such as a server that a notebook started, are not the loader's.
    """
    import psutil

    total = 0
    try:
        for worker in multiprocessing.active_children():
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                first = psutil.Process(worker.pid)
                for child in (first, *first.children(recursive=True)):
                    full = child.memory_full_info()
                    total += int(getattr(full, "pss", full.uss))
    except (psutil.Error, OSError):
        return None
    return total


def larger(a: dict[str, int | None] | None, b: dict[str, int | None]) -> dict[str, int | None]:
    """Of two readings the larger of each number; what one did not tell, the other's."""
    if a is None:
        return b
    return {name: max(filter(None, (a[name], b[name])), default=b[name]) for name in b}


def _status(name: str) -> int | None:
    for line in (_read(_STATUS) or "").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _device_module(device: Any) -> Any:
    if device is None or device.type == "cpu":
        return None
    import torch

    module = torch.get_device_module(device)
    known = hasattr(module, "reset_peak_memory_stats") and hasattr(module, "max_memory_allocated")
    return module if known else None
