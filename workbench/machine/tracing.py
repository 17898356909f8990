"""Whether torch.profiler may record what happens on the device, as far as that can be known."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NVIDIA_PARAMETERS = Path("/proc/driver/nvidia/params")


@dataclass(frozen=True, kw_only=True)
class DeviceTracing:
    """``possible`` is ``None`` when only a recording can tell."""

    possible: bool | None
    reason: str
    counters_restricted: bool | None = None
    """Hardware counters for administrators only; kernel times need none."""


def device_tracing(device_type: str, parameters: Path = NVIDIA_PARAMETERS) -> DeviceTracing:
    """Whether kernels of ``device_type`` can be recorded, from what is known without trying."""
    if device_type == "mps":
        return DeviceTracing(possible=False, reason="torch.profiler records no kernels on mps.")
    import torch

    profiler: Any = torch.profiler
    name = {"hip": "CUDA"}.get(device_type, device_type.upper())
    supported = {activity.name for activity in profiler.supported_activities()}
    if name not in supported and "PrivateUse1" not in supported:
        return DeviceTracing(
            possible=False, reason=f"this torch was built without tracing of {device_type}."
        )
    if device_type != "cuda":
        return DeviceTracing(
            possible=None, reason="torch can trace it; rights show in a recording."
        )
    restricted = counters_restricted(parameters)
    return DeviceTracing(
        possible=None,
        reason="torch can trace it; whether CUPTI is free and allowed shows in a recording.",
        counters_restricted=restricted,
    )


def counters_restricted(parameters: Path = NVIDIA_PARAMETERS) -> bool | None:
    """Whether the driver keeps hardware counters from this user; ``None`` if it does not tell."""
    try:
        lines = parameters.read_text().splitlines()
    except OSError:
        return None
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    value = found.get("RmProfilingAdminOnly")
    if value is None:
        return None
    is_admin = hasattr(os, "geteuid") and os.geteuid() == 0
    return value.strip() == "1" and not is_admin
