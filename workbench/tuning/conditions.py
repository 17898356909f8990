"""The state of the machine while a block was measured."""

from typing import Any

from workbench.recording.load import LoadProbe


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
