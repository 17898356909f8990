"""What does the preflight say, and when does it warn?"""

import sys
from typing import Any

import pytest

from workbench.machine import (
    AttentionBackEnd,
    Check,
    CpuLimits,
    DeviceInfo,
    DtypeProbe,
    Load,
    MatmulMode,
    Preflight,
    SharedMemory,
    checks,
    preflight,
    probe_rows,
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


def ratio(dtype: str, matmul: float | None, **rest: Any) -> DtypeProbe:
    fields = {"supported": True, "native": True, "convolution_ratio": None, "reason": None} | rest
    return DtypeProbe(dtype=dtype, matmul_ratio=matmul, **fields)


def test_fp16_that_the_cpu_imitates_is_named_with_its_price():
    row = probe_rows.dtype_row(
        "CPU",
        [
            ratio("fp32", 1.0),
            ratio("bf16", 0.26, convolution_ratio=0.52),
            ratio("fp16", 37.4, native=False, convolution_ratio=230.0),
            ratio("fp8", None, supported=False, native=False, reason="no such product"),
        ],
    )
    assert row.value == (
        "bf16 native, 0.26 to 0.52 × the time of fp32; "
        "fp16 imitated, 37 to 230 × the time of fp32; fp8 no (no such product)"
    )
    assert row.remedy == "slower than fp32 here: fp16 (37 to 230 × the time of fp32)"


def test_a_precision_that_was_not_measured_is_not_called_slow():
    row = probe_rows.dtype_row("CPU", [ratio("bf16", None, native=None, reason="not measured")])
    assert row.value == "bf16 cannot tell whether native (not measured)"
    assert row.remedy is None


def test_modes_say_what_they_change():
    made = [
        MatmulMode(mode="high", acts=False, ratio=1.01),
        MatmulMode(mode="medium", acts=True, ratio=0.434),
    ]
    row = probe_rows.mode_row("CPU", made)
    assert row.value == "high changes nothing; medium takes 0.43 × the time of highest"


def test_attention_says_what_works_and_what_nobody_tried():
    made = [
        AttentionBackEnd(name="flash", dtypes=("bf16", "fp16")),
        AttentionBackEnd(name="cudnn", dtypes=()),
        AttentionBackEnd(name="math", dtypes=None),
    ]
    assert probe_rows.attention_row("cuda:0", made).value == "flash (bf16, fp16); not tried: math"


def test_a_gtx_of_the_turing_generation_has_no_tensor_cores():
    device = DeviceInfo(
        index=0, type="cuda", name="NVIDIA GeForce GTX 1650", arch="sm_75", memory_bytes=4000 * MB
    )
    assert "no: lower precision saves memory" in probe_rows.tensor_core_row(device).value


def test_compiling_for_a_device_without_triton_is_a_warning(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("workbench.machine.toolchain.find_spec", lambda name: None)
    row = probe_rows.compile_row(["cuda"])
    assert row.state == "warning"
    assert "for cuda it lacks Triton" in row.value


def test_without_torch_nothing_is_tried():
    assert probe_rows.probe_rows(None, ()) == []


def test_the_worst_row_is_the_state_of_all():
    rows = (Check(name="a", value=""), Check(name="b", value="", state="warning"))
    assert Preflight(rows=rows).state == "warning"


def test_preflight_looks_at_everything_here_without_opening_a_device():
    found = preflight()
    names = [row.name for row in found.rows]
    for name in (
        "Python",
        "torch",
        "Processors",
        "Competing load",
        "Shared memory",
        "CPU precision",
        "Packages",
    ):
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
