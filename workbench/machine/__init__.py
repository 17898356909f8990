"""What this machine is and may do; looking never opens a device."""

from workbench.machine.accelerators import DeviceInfo, devices
from workbench.machine.attention import AttentionBackEnd, attention_back_ends
from workbench.machine.check import Check
from workbench.machine.checks import Preflight, preflight
from workbench.machine.competing_load import Load, load
from workbench.machine.cpus import CpuLimits, cpu_limits, usable_cpus
from workbench.machine.dev_shm import SharedMemory, shared_memory
from workbench.machine.dtypes import DtypeProbe, known_probe, native_dtypes, probe
from workbench.machine.installed import versions
from workbench.machine.matmul_modes import MatmulMode, matmul_modes

__all__ = [
    "AttentionBackEnd",
    "Check",
    "CpuLimits",
    "DeviceInfo",
    "DtypeProbe",
    "Load",
    "MatmulMode",
    "Preflight",
    "SharedMemory",
    "attention_back_ends",
    "cpu_limits",
    "devices",
    "known_probe",
    "load",
    "matmul_modes",
    "native_dtypes",
    "preflight",
    "probe",
    "shared_memory",
    "usable_cpus",
    "versions",
]
