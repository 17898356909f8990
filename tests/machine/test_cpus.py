"""How many processors may this process really use?"""

import subprocess
import sys
from pathlib import Path

import pytest

from workbench.machine.cpus import CpuLimits, cgroup_quota, usable_cpus


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def test_the_affinity_mask_counts_not_the_machine():
    # The case of mteb #1331: half the machine's cores asked for, 23 allowed, frozen.
    asked = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from workbench.machine import usable_cpus; print(usable_cpus())"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize(
    ("total", "affinity", "quota", "usable"),
    [
        (208, 23, None, 23),
        (64, 64, 4.0, 4),
        (64, 2, 4.0, 2),
        (8, 8, 1.5, 1),  # one and a half processors keep one worker busy
        (8, 8, 0.5, 1),  # and there is always one
    ],
)
def test_the_tighter_limit_wins(total: int, affinity: int, quota: float | None, usable: int):
    assert CpuLimits(total=total, affinity=affinity, quota=quota).usable == usable


def test_a_quota_of_version_2_is_found_in_the_own_group(tmp_path: Path):
    write(tmp_path / "proc/self/cgroup", "0::/jobs/mine")
    write(tmp_path / "cg/cpu.max", "max 100000")
    write(tmp_path / "cg/jobs/mine/cpu.max", "150000 100000")
    assert cgroup_quota(tmp_path / "proc", tmp_path / "cg") == 1.5


def test_a_tighter_quota_of_a_group_above_counts(tmp_path: Path):
    write(tmp_path / "proc/self/cgroup", "0::/jobs/mine")
    write(tmp_path / "cg/jobs/cpu.max", "200000 100000")
    write(tmp_path / "cg/jobs/mine/cpu.max", "800000 100000")
    assert cgroup_quota(tmp_path / "proc", tmp_path / "cg") == 2.0


def test_inside_a_container_only_the_mount_is_visible(tmp_path: Path):
    # The listed path is the host's; what the container sees is the mount itself.
    write(tmp_path / "proc/self/cgroup", "3:cpu,cpuacct:/docker/0123\n1:name=systemd:/")
    write(tmp_path / "cg/cpu,cpuacct/cpu.cfs_quota_us", "300000")
    write(tmp_path / "cg/cpu,cpuacct/cpu.cfs_period_us", "100000")
    assert cgroup_quota(tmp_path / "proc", tmp_path / "cg") == 3.0


@pytest.mark.parametrize("quota", ["-1", "max", ""])
def test_no_quota_is_none_not_zero(tmp_path: Path, quota: str):
    write(tmp_path / "proc/self/cgroup", "3:cpu:/\n0::/")
    write(tmp_path / "cg/cpu/cpu.cfs_quota_us", quota)
    write(tmp_path / "cg/cpu/cpu.cfs_period_us", "100000")
    write(tmp_path / "cg/cpu.max", f"{quota} 100000")
    assert cgroup_quota(tmp_path / "proc", tmp_path / "cg") is None


def test_a_system_without_control_groups_has_no_quota(tmp_path: Path):
    assert cgroup_quota(tmp_path / "proc", tmp_path / "cg") is None


def test_this_machine_has_at_least_one():
    assert usable_cpus() >= 1
