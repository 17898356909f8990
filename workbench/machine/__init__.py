"""What this machine is and may do; looking never opens a device."""

from workbench.machine.accelerators import DeviceInfo, devices
from workbench.machine.checks import Check, Preflight, preflight
from workbench.machine.competing_load import Load, load
from workbench.machine.cpus import CpuLimits, cpu_limits, usable_cpus
from workbench.machine.dev_shm import SharedMemory, shared_memory
from workbench.machine.dtypes import native_dtypes
from workbench.machine.installed import versions

__all__ = [
    "Check",
    "CpuLimits",
    "DeviceInfo",
    "Load",
    "Preflight",
    "SharedMemory",
    "cpu_limits",
    "devices",
    "load",
    "native_dtypes",
    "preflight",
    "shared_memory",
    "usable_cpus",
    "versions",
]
