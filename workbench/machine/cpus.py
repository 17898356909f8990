"""How many processors this process may really use: affinity and container quota, not the box."""

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, kw_only=True)
class CpuLimits:
    """What limits the processors of this process."""

    total: int
    """Processors of the machine."""
    affinity: int
    """Processors that the scheduler may run this process on."""
    quota: float | None
    """Processors' worth of time that the container grants; ``None`` for no limit."""

    @property
    def usable(self) -> int:
        """Whole processors that this process can keep busy, at least one."""
        most = float(self.affinity) if self.quota is None else min(self.affinity, self.quota)
        return max(1, int(most))


def usable_cpus() -> int:
    """Whole processors that this process can keep busy, by affinity and container quota."""
    return cpu_limits().usable


def cpu_limits() -> CpuLimits:
    """Processors of the machine, and what this process may use of them."""
    total = os.cpu_count() or 1
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else total
    return CpuLimits(total=total, affinity=affinity, quota=cgroup_quota())


def cgroup_quota(proc: Path = PROC, cgroups: Path = CGROUPS) -> float | None:
    """The tightest CPU quota of the control groups above this process, in processors.

    Reads version 2 (``cpu.max``) and version 1 (``cpu.cfs_quota_us``), and looks at every group
    from the process's own up to the mount: inside a container the listed path often belongs to
    the host and only the mount itself is visible.
    """
    quotas = [_v2(folder) for folder in _folders(proc, "", (cgroups, cgroups / "unified"))]
    v1_mounts = (cgroups / "cpu", cgroups / "cpu,cpuacct", cgroups / "cpuacct,cpu")
    quotas += [_v1(folder) for folder in _folders(proc, "cpu", v1_mounts)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _folders(proc: Path, controller: str, mounts: tuple[Path, ...]) -> list[Path]:
    """The process's group and all above it, in every mount that exists."""
    within = _group(proc, controller)
    found = []
    for mount in mounts:
        if mount.is_dir():
            group = mount / within.lstrip("/")
            above = [g for g in (group, *group.parents) if g.is_relative_to(mount)]
            found += above
    return found


def _group(proc: Path, controller: str) -> str:
    """Path of this process's group for a controller; the empty name is version 2."""
    for line in _lines(proc / "self" / "cgroup"):
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controller in controllers.split(","):
            return path
    return "/"


def _v2(folder: Path) -> float | None:
    parts = " ".join(_lines(folder / "cpu.max")).split()
    if len(parts) != 2 or parts[0] == "max":
        return None
    return _ratio(parts[0], parts[1])


def _v1(folder: Path) -> float | None:
    quota = _lines(folder / "cpu.cfs_quota_us")
    period = _lines(folder / "cpu.cfs_period_us")
    return _ratio(quota[0], period[0]) if quota and period else None


def _ratio(quota: str, period: str) -> float | None:
    try:
        granted, each = int(quota), int(period)
    except ValueError:
        return None
    return granted / each if granted > 0 and each > 0 else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
