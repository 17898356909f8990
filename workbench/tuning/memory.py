"""Memory of a block: the most that it held, and whether the machine has enough left."""

from contextlib import suppress
from pathlib import Path
from typing import Any

LEAST_LEFT = 0.04
"""Share of the memory below which a step is not followed by another: beyond it the system ends
processes, ours among them (own choice)."""
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
    """Memory of this process's children, what they share counted in parts; 0 without any."""
    import psutil

    total = 0
    try:
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                full = child.memory_full_info()
                total += int(getattr(full, "pss", full.uss))
    except (psutil.Error, OSError):
        return None
    return total


class MemoryGuard:
    """Ends a measurement before the machine has no memory left."""

    def __init__(self) -> None:
        self._limit = _limit()

    def check(self) -> None:
        """Compare what is left with what must be.

        Raises:
            MemoryError: Too little is left.
        """
        left = available_bytes()
        if left < LEAST_LEFT * self._limit:
            from workbench.units import bytes_text

            raise MemoryError(
                f"only {bytes_text(left)} of {bytes_text(self._limit)} of memory were left, so it "
                "was ended before the system would have done so"
            )


def available_bytes() -> int:
    """What this process may still take, its container's limit included."""
    import psutil

    free = int(psutil.virtual_memory().available)
    limit, used = _cgroup("memory.max"), _cgroup("memory.current")
    if limit is None or used is None:
        return free
    return min(free, max(0, limit - used + (_reclaimable() or 0)))


def _limit() -> int:
    import psutil

    whole = int(psutil.virtual_memory().total)
    limit = _cgroup("memory.max")
    return whole if limit is None else min(whole, limit)


def _reclaimable() -> int | None:
    """File pages that the container's limit counts and the system gives back when asked."""
    text = _read(Path("/sys/fs/cgroup/memory.stat"))
    for line in (text or "").splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file" and value.isdecimal():
            return int(value)
    return None


def _cgroup(name: str) -> int | None:
    text = (_read(Path("/sys/fs/cgroup") / name) or "").strip()
    return int(text) if text.isdecimal() else None


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
