"""The state of the machine while a block was measured."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.recording.load import LoadProbe
from workbench.units import share_text


class ConditionsProbe:
    """Samples load, clock, temperature and other processes on the devices, from start to end.

    Nothing here opens a device: NVIDIA's are asked through the driver's management library.
    """

    def __init__(self) -> None:
        self._load = LoadProbe()
        self._before = _state()

    def others_cpu_s(self) -> float:
        """Processor seconds that other programs used so far."""
        return self._load.others_cpu_s()

    def read(self) -> dict[str, Any]:
        """Values by name, ``None`` where the system does not tell."""
        after = _state()
        found: dict[str, Any] = self._load.to_json()
        for name, value in after.items():
            found[name] = _mean(self._before[name], value)
        return found


def conditions_text(blocks: Sequence[Mapping[str, Any]]) -> str:
    """The usual state of the machine during these blocks; empty where nothing is known of it."""
    said = []
    others = _typical(blocks, "others_cpu_share")
    if others is not None:
        said.append(f"other programs used {share_text(others)} of the processors")
    for name, text in (
        ("load_average_after", "load average {:.1f}"),
        ("clock_mhz", "clock {:.0f} MHz"),
        ("temperature_c", "{:.0f} °C"),
    ):
        value = _typical(blocks, name)
        if value is not None:
            said.append(text.format(value))
    for number, device in enumerate((blocks[-1].get("devices") or ()) if blocks else ()):
        if device["processes"] is not None:
            said.append(f"device {number}: {device['processes']} processes")
    return f"The machine meanwhile: {', '.join(said)}." if said else ""


def _typical(blocks: Sequence[Mapping[str, Any]], name: str) -> float | None:
    known = [float(block[name]) for block in blocks if block.get(name) is not None]
    return statistics.median(known) if known else None


def _mean(before: Any, after: Any) -> Any:
    """Of a number the mean of both readings; of anything else the later one."""
    if isinstance(before, float) and isinstance(after, float):
        return round((before + after) / 2, 1)
    return after


def _state() -> dict[str, Any]:
    from workbench.machine.heat import clock_mhz, temperature_c
    from workbench.machine.nvidia import nvidia_devices

    devices = nvidia_devices() or ()
    return {
        "clock_mhz": clock_mhz(),
        "temperature_c": temperature_c(),
        "devices": [
            {
                "name": device.name,
                "processes": device.processes,
                "clock_mhz": device.clock_mhz,
                "temperature_c": device.temperature_c,
            }
            for device in devices
        ]
        or None,
    }
