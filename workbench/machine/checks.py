"""Everything that decides what this machine can measure, as rows for ``workbench doctor``."""

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.machine.accelerators import DeviceInfo, devices
from workbench.machine.check import Check, State
from workbench.machine.competing_load import CROWDED, Load, load
from workbench.machine.cpus import CpuLimits, cpu_limits
from workbench.machine.dev_shm import SharedMemory, shared_memory
from workbench.machine.installed import versions
from workbench.machine.nvidia import nvidia_devices
from workbench.machine.probe_rows import compile_row, probe_rows
from workbench.machine.toolchain import start_method
from workbench.machine.tracing import DeviceTracing, device_tracing
from workbench.units import bytes_text, share_text, significant

SMALL_SHARED_MEMORY = 1_000_000_000
"""Containers give 64 MB by default and were cured with 2 to 3 GB (pytorch #5040)."""
STOLEN = 0.05
"""Own choice: share of the processors that the host may take before we say so."""
SHOWN_VERSIONS = ("torch", "numpy", "plotly", "jupyterlab", "ipywidgets", "anywidget", "papermill")


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """The rows in the order in which they are shown."""

    rows: tuple[Check, ...]

    @property
    def state(self) -> State:
        """The worst state of all rows."""
        states = {row.state for row in self.rows}
        return "problem" if "problem" in states else "warning" if "warning" in states else "ok"


def preflight() -> Preflight:
    """Look at this machine; opens no device in this process and changes nothing.

    What each type costs is measured in another process the first time, which takes seconds.
    """
    installed = versions()
    found = devices()
    return Preflight(
        rows=(
            python_row(installed),
            torch_row(installed),
            cpu_row(cpu_limits()),
            load_row(load()),
            shared_memory_row(shared_memory()),
            *device_rows(found, hidden_nvidia=_hidden_nvidia(found)),
            *(tracing_row(device_tracing(kind), kind) for kind in sorted({d.type for d in found})),
            *probe_rows(installed["torch"], found),
            compile_row(sorted({"cpu", *(device.type for device in found)})),
            start_method_row(start_method()),
            packages_row(installed),
        )
    )


def _hidden_nvidia(found: tuple[DeviceInfo, ...]) -> int:
    """NVIDIA devices that the driver shows and this torch cannot use."""
    return 0 if found else len(nvidia_devices() or ())


def python_row(installed: Mapping[str, str | None]) -> Check:
    """The interpreter and the system."""
    return Check(name="Python", value=f"{installed['python']} on {installed['system']}")


def torch_row(installed: Mapping[str, str | None]) -> Check:
    """The installed torch and what it was built for."""
    if installed["torch"] is None:
        return Check(
            name="torch",
            value="not installed: traces can be read, nothing can be recorded",
            state="warning",
            remedy='pip install "torch-workbench[torch]"',
        )
    built = [f"{name} {installed[name]}" for name in ("cuda", "hip", "cudnn") if installed[name]]
    return Check(
        name="torch", value=f"{installed['torch']}, built for {', '.join(built) or 'the CPU'}"
    )


def cpu_row(limits: CpuLimits) -> Check:
    """Processors that workers and threads may share."""
    why = []
    if limits.affinity < limits.total:
        why.append(f"affinity {limits.affinity}")
    if limits.quota is not None:
        why.append(f"container quota {significant(limits.quota)}")
    value = f"{limits.usable} usable of {limits.total}"
    if limits.usable >= limits.total:
        return Check(name="Processors", value=value)
    return Check(
        name="Processors",
        value=f"{value} ({', '.join(why)})",
        state="warning",
        remedy=f"count workers and threads against {limits.usable}, not {limits.total}.",
    )


def load_row(found: Load) -> Check:
    """Competing load, which makes small differences unmeasurable."""
    value = f"other processes use {share_text(found.others_cpu_share)} of the usable processors"
    if found.load_average is not None:
        value += f"; load average {significant(round(found.load_average, 2))}"
    if found.steal_share is not None:
        value += f"; steal {share_text(found.steal_share)}"
    if found.others_cpu_share <= CROWDED and (found.steal_share or 0) <= STOLEN:
        return Check(name="Competing load", value=value)
    return Check(
        name="Competing load",
        value=value,
        state="warning",
        remedy="step times will scatter: stop other work, or believe only large differences.",
    )


def shared_memory_row(found: SharedMemory | None) -> Check:
    """Room for the batches that workers hold ready."""
    name = "Shared memory"
    if found is None:
        return Check(name=name, value="no /dev/shm on this system")
    value = f"{bytes_text(found.free)} free of {bytes_text(found.size)} in /dev/shm"
    if found.free >= SMALL_SHARED_MEMORY:
        return Check(name=name, value=value)
    return Check(
        name=name,
        value=value,
        state="warning",
        remedy="workers crash with a bus error when workers × prefetch × batch bytes exceeds it; "
        "in Docker: --shm-size=2g",
    )


def device_rows(found: tuple[DeviceInfo, ...], *, hidden_nvidia: int = 0) -> list[Check]:
    """One row a device, or one that says there is none."""
    if found:
        return [_device_row(device) for device in found]
    if hidden_nvidia:
        return [
            Check(
                name="Device",
                value=f"{hidden_nvidia} NVIDIA, which this build of torch cannot use",
                state="warning",
                remedy="install a CUDA build of torch: https://pytorch.org/get-started/locally",
            )
        ]
    return [Check(name="Device", value="none: everything runs on the CPU")]


def _device_row(device: DeviceInfo) -> Check:
    parts = [device.name or "name not asked, since that would initialise it"]
    if device.arch:
        parts.append(device.arch)
    if device.memory_bytes is not None:
        free = "" if device.free_bytes is None else f"{bytes_text(device.free_bytes)} free of "
        parts.append(free + bytes_text(device.memory_bytes))
    name = f"Device {device.type}:{device.index}"
    if not device.processes:
        return Check(name=name, value=", ".join(parts))
    return Check(
        name=name,
        value=f"{', '.join(parts)}; {device.processes} processes use it",
        state="warning",
        remedy="its times are shared with others: choose another device, or wait.",
    )


def tracing_row(found: DeviceTracing, kind: str) -> Check:
    """Whether kernels can be recorded on the device."""
    name = f"Tracing {kind}"
    if found.possible is False:
        return Check(
            name=name,
            value=f"no: {found.reason}",
            state="warning",
            remedy="host times can be recorded; device numbers will read “not measured”.",
        )
    value = f"cannot tell: {found.reason}"
    if found.counters_restricted:
        value += " Hardware counters are for administrators only; kernel times need none."
    return Check(name=name, value=value)


def start_method_row(method: str) -> Check:
    """How workers start."""
    what = {
        "fork": "workers start fast, and see what is defined in a notebook",
        "spawn": "workers import everything anew, and need what they use in a module",
        "forkserver": "workers import everything anew, and need what they use in a module",
    }
    return Check(name="Worker start", value=f"{method}: {what.get(method, 'unknown')}")


def packages_row(installed: Mapping[str, str | None]) -> Check:
    """Versions that matter for what is shown."""
    shown = [f"{name} {installed[name] or 'absent'}" for name in SHOWN_VERSIONS if name != "torch"]
    absent = [name for name in SHOWN_VERSIONS if name != "torch" and not installed[name]]
    return Check(
        name="Packages",
        value=", ".join(shown),
        state="warning" if absent else "ok",
        remedy='for notebooks and reports: pip install "torch-workbench[notebook]"'
        if absent
        else None,
    )
