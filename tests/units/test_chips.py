"""Which device has tensor cores, and for which types? From the vendors' own tables."""

import pytest

from workbench.chips import capability, generation, generation_text, native, tensor_cores


@pytest.mark.parametrize(
    ("arch", "known"),
    [("sm_80", (8, 0)), ("8.0", (8, 0)), ("sm_120", (12, 0)), ("12.0", (12, 0)), ("sm_90a", (9, 0)),
     ("gfx942", None), ("", None), (None, None)],
)  # fmt: skip
def test_capability_is_read_from_both_spellings(arch: str | None, known: tuple[int, int] | None):
    assert capability("cuda", arch) == known


@pytest.mark.parametrize("kind", ["hip", "mlu", "npu", "xpu", "other", None])
def test_numbers_of_other_vendors_are_no_compute_capability(kind: str | None):
    """9.0 is Hopper with NVIDIA, and anything from Vega to CDNA 2 with AMD; an MLU370 says 3.0."""
    assert capability(kind, "9.0") is None
    for dtype in ("fp16", "bf16", "tf32", "fp8"):
        assert native(dtype, kind, None, "9.0") is None, "with NVIDIA's table: all of them"
    assert tensor_cores(kind, None, "9.0") is None
    assert tensor_cores(kind, None, "3.0") is None, "with NVIDIA's table: no"


@pytest.mark.parametrize(
    ("name", "major", "minor", "target", "matrix_cores"),
    [
        # LLVM's list of AMDGPU processors; hipDeviceProp tells major and minor only.
        ("AMD Instinct MI210", 9, 0, "gfx90a", True),
        ("AMD Instinct MI250X", 9, 0, "gfx90a", True),
        ("AMD Instinct MI100", 9, 0, "gfx908", True),
        ("AMD Instinct MI60", 9, 0, "gfx906", False),
        ("Radeon Instinct MI25", 9, 0, "gfx900", False),
        # An MI250 under ROCm 6.2 says no more than that, and so does a Radeon VII.
        ("AMD Radeon Graphics", 9, 0, "gfx90X", None),
        ("AMD Instinct MI300X", 9, 4, "gfx94X", True),
        ("", 9, 5, "gfx95X", True),
        ("AMD Radeon RX 6900 XT", 10, 3, "gfx103X", False),
        ("AMD Radeon RX 7900 XTX", 11, 0, "gfx110X", True),
    ],
)
def test_amds_numbers_become_the_target_that_they_stand_for(
    name: str, major: int, minor: int, target: str, matrix_cores: bool | None
):
    assert generation("hip", name, major, minor) == target
    assert tensor_cores("hip", name, target) is matrix_cores
    assert native("bf16", "hip", name, target) is matrix_cores


def test_a_generation_is_said_in_its_vendors_words():
    assert generation("cuda", "NVIDIA H100", 9, 0) == "9.0"
    assert generation_text("cuda", "sm_80") == "compute capability 8.0"
    assert generation_text("hip", "gfx90a:sramecc+:xnack-") == "gfx90a"
    assert generation_text("mlu", "3.0") == "3.0"
    assert generation_text("cuda", "") == "generation not recorded"


@pytest.mark.parametrize(
    ("name", "arch", "has"),
    [
        ("Tesla P100-PCIE-16GB", "6.0", False),
        ("Tesla V100-SXM2-16GB", "7.0", True),
        ("Tesla T4", "7.5", True),
        ("NVIDIA GeForce RTX 2080", "7.5", True),
        # Turing without them, of the same capability.
        ("NVIDIA GeForce GTX 1650", "7.5", False),
        ("NVIDIA GeForce MX450", "7.5", False),
        (None, "7.5", None),
        ("NVIDIA H100 80GB HBM3", "9.0", True),
        ("AMD Instinct MI250X", "gfx90a:sramecc+:xnack-", True),
        ("AMD Radeon RX 6900 XT", "gfx1030", False),
        ("Intel Max 1550", None, None),
    ],
)
def test_tensor_cores(name: str | None, arch: str | None, has: bool | None):
    assert tensor_cores("cuda", name, arch) is has


@pytest.mark.parametrize(
    ("arch", "types"),
    [
        ("7.0", {"fp16"}),
        ("8.0", {"fp16", "bf16", "tf32"}),
        ("8.6", {"fp16", "bf16", "tf32"}),
        ("8.9", {"fp16", "bf16", "tf32", "fp8"}),
        ("gfx90a", {"fp16", "bf16"}),
        ("gfx942", {"fp16", "bf16", "tf32", "fp8"}),
        ("gfx1100", {"fp16", "bf16"}),
    ],
)
def test_types_of_each_generation(arch: str, types: set[str]):
    found = {
        dtype for dtype in ("tf32", "bf16", "fp16", "fp8") if native(dtype, "cuda", "RTX", arch)
    }
    assert found == types
    assert native("fp32", None, None, None)
    assert native("bf16", "cuda", None, None) is None
