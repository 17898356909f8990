"""The table of accelerators: names as drivers give them, dense figures, nothing guessed."""

import pytest

from workbench import hardware


@pytest.mark.parametrize(
    ("device", "row"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM5"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA A100-SXM4-40GB", "A100 SXM4 40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4 80GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
        ("Tesla V100-SXM2-16GB", "V100 SXM2 16GB"),
        ("Tesla T4", "T4"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA B200", "B200 (HGX 1000W)"),
        ("NVIDIA GB200", "GB200 (per GPU, 1200W)"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("AMD Instinct MI300X", "MI300X"),
        ("AMD Instinct MI300X OAM", "MI300X"),
    ],
)
def test_a_device_is_found_by_the_name_of_its_driver(device: str, row: str) -> None:
    found = hardware.find(device)
    assert found is not None
    assert found.name == row


@pytest.mark.parametrize(
    "device",
    [
        *("NVIDIA A100-PCIE-40GB", "NVIDIA L40", "Quadro RTX 6000", "NVIDIA H100 NVL"),
        *("NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 3090", "AMD Instinct MI210"),
        *("", None),
    ],
)
def test_a_device_that_no_row_names_is_not_guessed_from_a_similar_one(device: str | None) -> None:
    assert hardware.find(device) is None


def test_figures_are_dense_ones_and_name_their_source() -> None:
    h100 = hardware.find("NVIDIA H100 80GB HBM3")
    assert h100 is not None
    # NVIDIA prints 1979 TFLOP/s for bf16 "with sparsity"
    assert h100.tflops["bf16"] == pytest.approx(989.4)
    assert h100.bandwidth_gb_s == 3350
    for row in hardware.accelerators():
        assert row.source, row.name
        assert row.checked_on, row.name
        low, high = row.tflops.get("bf16"), row.tflops.get("fp8")
        assert low is None or high is None or high <= 2.05 * low, row.name


def test_a_card_that_shows_as_two_devices_is_two_halves() -> None:
    found = hardware.find("AMD Instinct MI250X/MI250")
    assert found is not None
    assert found.tflops["fp16"] == pytest.approx(383 / 2)


def test_what_a_device_lacks_has_no_figure() -> None:
    t4 = hardware.find("Tesla T4")
    assert t4 is not None
    assert "bf16" not in t4.tflops
