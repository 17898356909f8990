"""Which device has tensor cores, and for which types? From the vendors' own tables."""

import pytest

from workbench.chips import capability, native, tensor_cores


@pytest.mark.parametrize(
    ("arch", "known"),
    [("sm_80", (8, 0)), ("8.0", (8, 0)), ("sm_120", (12, 0)), ("12.0", (12, 0)), ("sm_90a", (9, 0)),
     ("gfx942", None), ("", None), (None, None)],
)  # fmt: skip
def test_capability_is_read_from_both_spellings(arch: str | None, known: tuple[int, int] | None):
    assert capability(arch) == known


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
    assert tensor_cores(name, arch) is has


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
    found = {dtype for dtype in ("tf32", "bf16", "fp16", "fp8") if native(dtype, "RTX", arch)}
    assert found == types
    assert native("fp32", None, None)
    assert native("bf16", None, None) is None
