"""Distances to the roof, by hand arithmetic."""

from typing import Any

import pandas as pd
import pytest

from workbench.analysis.costs.join import COST_COLUMNS, Costs
from workbench.analysis.costs.peaks import Peaks, peaks_from
from workbench.analysis.costs.roofline import Roofline, by_kind, roofline

PEAKS = Peaks(
    device="a device",
    flops_per_s={"bf16": 100e12, "fp32": 10e12},
    bytes_per_s=1e12,
    cached=((1_000_000, 4e12),),
    source="made up",
    measured=False,
)


def costs(*rows: dict[str, Any], on_device: bool = True) -> Costs:
    empty = {
        "shapes": None,
        "strides": None,
        "recomputed": 0,
        "tensor_core_share": None,
        "reason": None,
    }
    made = [{**empty, "dtype": None, "calls": 1, "flops": 0, "bytes": 0, **row} for row in rows]
    table = pd.DataFrame(made, columns=list(COST_COLUMNS))
    for name in ("flops", "bytes", "recomputed"):
        table[name] = table[name].astype("Int64")
    total = int(table["time_ns"].sum())
    return Costs(table=table, steps=2, time_ns=total, counted_ns=total, on_device=on_device)


def found(*rows: dict[str, Any], on_device: bool = True) -> Roofline:
    return roofline(costs(*rows, on_device=on_device), PEAKS)


def row(result: Roofline, name: str) -> dict[str, Any]:
    rows = result.table[result.table["name"] == name].to_dict("records")
    return {str(k): v for k, v in rows[0].items()}


PRODUCT = {"name": "mm", "kind": "gemm", "dtype": "bf16", "flops": 2 * 10**9, "bytes": 4 * 10**6}


def test_a_product_against_the_peak_of_its_type() -> None:
    # 2e9 FLOPs at 100e12 a second take 20 µs; 4 MB at 1e12 take 4 µs. It took 50 µs.
    got = row(found({**PRODUCT, "time_ns": 50_000}), "mm")
    assert got["roof_ns"] == pytest.approx(20_000)
    assert got["distance_ns"] == pytest.approx(30_000)
    assert (got["regime"], got["roof_share"]) == ("compute", pytest.approx(0.4))
    assert got["tflop_s"] == pytest.approx(40)
    assert got["intensity"] == pytest.approx(500)


def test_an_elementwise_operator_against_the_memory() -> None:
    # 80 MB at 1e12 take 80 µs
    got = row(
        found({"name": "add", "kind": "elementwise", "bytes": 80_000_000, "time_ns": 100_000}),
        "add",
    )
    assert (got["roof_ns"], got["regime"]) == (pytest.approx(80_000), "bandwidth")
    assert got["gb_s"] == pytest.approx(800)


def test_data_that_stays_in_a_cache_moves_at_the_speed_of_the_cache() -> None:
    # each of 10 calls moves 800 kB: at 4e12 they take 2 µs together, and took 4
    small = {"name": "add", "kind": "elementwise", "calls": 10, "bytes": 8_000_000}
    assert row(found({**small, "time_ns": 4_000}), "add")["roof_ns"] == pytest.approx(2_000)


def test_short_calls_far_from_their_roof_are_overhead() -> None:
    tiny = {"name": "add", "kind": "elementwise", "calls": 100, "bytes": 1000, "time_ns": 200_000}
    assert row(found(tiny), "add")["regime"] == "overhead"


def test_sorted_by_what_could_be_won_and_summed() -> None:
    near = {"name": "near", "kind": "elementwise", "bytes": 90_000_000, "time_ns": 100_000}
    far = {**PRODUCT, "name": "far", "time_ns": 60_000}
    result = found(near, far)
    assert result.table["name"].tolist() == ["far", "near"]
    # roofs of 90 and 20 µs of 160 µs
    assert (result.time_ns, result.roof_ns) == (160_000, 110_000)
    assert result.share == pytest.approx(110 / 160)
    kinds = by_kind(result).set_index("kind")
    assert kinds.loc["gemm", "distance_ns"] == pytest.approx(40_000)


def test_a_type_without_a_peak_has_no_roof() -> None:
    odd = {**PRODUCT, "dtype": "fp64", "time_ns": 50_000}
    result = found(odd, {**PRODUCT, "name": "known", "time_ns": 50_000})
    assert pd.isna(row(result, "mm")["roof_ns"])
    assert pd.isna(row(result, "mm")["regime"])
    assert result.coverage == pytest.approx(0.5)


def test_nothing_gains_more_than_it_takes() -> None:
    """A count above the roof (data left in a cache) leaves no distance, and no negative one."""
    result = found({**PRODUCT, "time_ns": 10_000})
    assert row(result, "mm")["distance_ns"] == 0
    assert result.share == 1.0


def test_peaks_are_written_and_read() -> None:
    assert peaks_from(PEAKS.to_json()) == PEAKS
    assert peaks_from({"flops_per_s": "many"}) is None
    assert PEAKS.ridge["bf16"] == pytest.approx(100)
    assert PEAKS.flops("tf32") == 10e12, "fp32 stands in"
