"""Real traces with shapes: what they compute lies below the roof of their device."""

from pathlib import Path

import pytest

import workbench as wb

pytestmark = [pytest.mark.slow, pytest.mark.traces]

BERT = "AMD-AGI__TraceLens/tests__traces__h100__gaunernst*"
QWEN = "AMD-AGI__TraceLens/tests__traces__h100__Qwen*"
MI300X = "AMD-AGI__TraceLens/tests__traces__mi300__Qwen*"
SEGMENT = "pytorch-labs__segment-anything-fast/amg_example__amg_example_trace.json.gz"


@pytest.mark.parametrize(
    ("pattern", "peak", "least"),
    [
        (BERT, 989.4e12, 0.9),
        (QWEN, 989.4e12, 0.9),
        (SEGMENT, 312e12, 0.85),
        (MI300X, 1307.4e12, 0.9),
    ],
)
def test_nothing_is_faster_than_its_device_and_no_false_precision_is_advised(
    pattern: str, peak: float, least: float, traces_root: Path
) -> None:
    """Dense bf16 peaks of the datasheets of H100 SXM, A100 and MI300X."""
    run = wb.open(next(iter(sorted(traces_root.glob(pattern)))))
    costs, roof, gemms = run.ranks[0].costs.costs, run.roofline, run.gemms
    assert costs is not None
    assert roof is not None
    assert gemms is not None
    assert costs.coverage is not None
    assert costs.coverage >= least
    half = roof[roof["dtype"] == "bf16"]
    assert len(half)
    assert (half["tflop_s"] * 1e12 < peak).all()
    above = roof["time_ns"][roof["roof_share"] > 1.05].sum() / roof["time_ns"].sum()
    assert above < 0.01
    own = gemms[gemms["dtype"] == "bf16"]["advice"].dropna()
    assert not own.str.contains("TF32|bf16 would").any()
