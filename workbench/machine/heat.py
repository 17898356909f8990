"""Clock and temperature of the processors, where the system tells them."""

from typing import Any


def clock_mhz() -> float | None:
    """Mean clock of the processors; ``None`` where the system does not tell."""
    import psutil

    ask: Any = getattr(psutil, "cpu_freq", None)
    try:
        found = None if ask is None else ask()
    except (OSError, RuntimeError, NotImplementedError):
        return None
    current = getattr(found, "current", None)
    return float(current) if current else None


def temperature_c() -> float | None:
    """The hottest sensor of a processor in degrees Celsius; ``None`` without sensors."""
    import psutil

    ask: Any = getattr(psutil, "sensors_temperatures", None)
    try:
        found = {} if ask is None else ask()
    except (OSError, RuntimeError):
        return None
    each = [
        sensor.current
        for name in _PROCESSORS
        for sensor in found.get(name, ())
        if sensor.current is not None and sensor.current > 0
    ]
    return float(max(each)) if each else None


_PROCESSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "acpitz")
