"""What does the preflight say, and when does it warn?"""

import sys

import pytest

from workbench.machine import (
    Check,
    CpuLimits,
    DeviceInfo,
    Load,
    Preflight,
    SharedMemory,
    checks,
    preflight,
)

MB = 10**6


def test_a_container_with_fewer_processors_is_said_before_workers_are_chosen():
    row = checks.cpu_row(CpuLimits(total=208, affinity=208, quota=23.0))
    assert row.state == "warning"
    assert row.value == "23 usable of 208 (container quota 23.0)"
    assert "23" in (row.remedy or "")


def test_all_processors_usable_is_fine():
    assert checks.cpu_row(CpuLimits(total=8, affinity=8, quota=None)).state == "ok"


def test_dockers_default_of_64_mb_shared_memory_is_a_warning():
    row = checks.shared_memory_row(SharedMemory(size=64 * MB, free=64 * MB))
    assert row.state == "warning"
    assert "64.0 MB free" in row.value
    assert "--shm-size" in (row.remedy or "")


def test_enough_or_no_shared_memory_is_fine():
    assert checks.shared_memory_row(SharedMemory(size=8000 * MB, free=7000 * MB)).state == "ok"
    assert checks.shared_memory_row(None).state == "ok"


@pytest.mark.parametrize(
    ("others", "steal", "state"),
    [(0.02, None, "ok"), (0.02, 0.01, "ok"), (0.8, 0.0, "warning"), (0.0, 0.2, "warning")],
)
def test_competing_load_and_steal_are_warnings(others: float, steal: float | None, state: str):
    row = checks.load_row(Load(load_average=1.0, others_cpu_share=others, steal_share=steal))
    assert row.state == state


def test_a_gpu_that_this_torch_cannot_use_is_not_called_none():
    (row,) = checks.device_rows((), hidden_nvidia=2)
    assert row.state == "warning"
    assert "2 NVIDIA" in row.value


def test_a_device_that_others_use_is_a_warning():
    device = DeviceInfo(
        index=0,
        type="cuda",
        name="NVIDIA A100",
        arch="sm_80",
        memory_bytes=80_000 * MB,
        free_bytes=60_000 * MB,
        processes=3,
    )
    (row,) = checks.device_rows((device,))
    assert row.name == "Device cuda:0"
    assert "60.0 GB free of 80.0 GB" in row.value
    assert row.state == "warning"


def test_fp16_that_the_cpu_imitates_is_named_with_its_price():
    row = checks.precision_row({"bf16": True, "fp16": False})
    assert row.value == "bf16 native, fp16 imitated"
    assert "fp16" in (row.remedy or "")


def test_an_unknown_precision_is_not_called_slow():
    row = checks.precision_row({"bf16": None, "fp16": None})
    assert "cannot tell" in row.value
    assert row.remedy is None


def test_the_worst_row_is_the_state_of_all():
    rows = (Check(name="a", value=""), Check(name="b", value="", state="warning"))
    assert Preflight(rows=rows).state == "warning"


def test_preflight_looks_at_everything_here_without_opening_a_device():
    found = preflight()
    names = [row.name for row in found.rows]
    for name in ("Python", "torch", "Processors", "Competing load", "Shared memory", "Packages"):
        assert name in names
    assert all(row.value for row in found.rows)
    assert not sys.modules["torch"].cuda.is_initialized()


def test_without_torch_the_preflight_still_answers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(
        "workbench.machine.installed.package_version", lambda name: None if name == "torch" else "1"
    )
    row = next(row for row in preflight().rows if row.name == "torch")
    assert row.state == "warning"
    assert "traces can be read" in row.value
