"""The roof, the way down to it, products, and the model as a tree, where arithmetic puts them."""

import numpy as np
import pandas as pd
import pytest

from workbench.figures.empty import is_unmeasured
from workbench.figures.gemms import gemm_speeds
from workbench.figures.module_tree import module_tree
from workbench.figures.roof_waterfall import roof_waterfall
from workbench.figures.roofline import roofline_points

US = 1000.0
ROOF = pd.DataFrame(
    {
        "name": ["aten::mm", "aten::add", "mylib::scan"],
        "shapes": ["[[8,8],[8,8]]", "[[8]]", None],
        "kind": ["gemm", "elementwise", None],
        "dtype": ["fp32", None, None],
        "calls": [1.0, 1.0, 1.0],
        "time_ns": [100 * US, 50 * US, 10 * US],
        "flops": [2e9, 0.0, np.nan],
        "bytes": [1e7, 5e6, np.nan],
        "intensity": [200.0, 0.0, np.nan],
        "tflop_s": [20.0, 0.0, np.nan],
        "gb_s": [100.0, 100.0, np.nan],
        "roof_ns": [40 * US, 25 * US, np.nan],
        "distance_ns": [60 * US, 25 * US, np.nan],
        "roof_share": [0.4, 0.5, np.nan],
        "regime": ["compute", "bandwidth", None],
    }
)
PEAKS = {"fp32": 50e12, "bf16": 400e12}


def test_a_mark_stands_at_its_intensity_and_speed_below_the_roof():
    figure = roofline_points(ROOF, peaks=PEAKS, bytes_per_s=200e9, source="by hand")
    lines = [each for each in figure.data if each.mode == "lines"]
    assert [line.name for line in lines] == ["roof of fp32"], "of the types that were computed in"
    # the ridge: 50e12 FLOPs a second over 200e9 bytes a second
    assert list(lines[0].x)[1] == 250
    assert list(lines[0].y)[1:] == [50, 50]
    compute, memory = (each for each in figure.data if each.mode == "markers")
    assert (compute.x[0], compute.y[0]) == (200, 20)
    left = memory.x[0]
    assert left == min(lines[0].x)
    # half of the bandwidth: half as high as the slope there
    assert memory.y[0] == pytest.approx(lines[0].y[0] / 2)
    # areas as 100 to 50 of 150
    sizes = [each.marker.size[0] - 6 for each in (compute, memory)]
    assert sizes[0] ** 2 / sizes[1] ** 2 == pytest.approx(2)
    # 85 of 150 µs are distance
    assert figure.layout.title.text.startswith("Operators reach 43 % of their roof; aten::mm is")
    assert "33 % of the time, without FLOPs" in figure.layout.title.subtitle.text


def test_the_way_down_to_the_roof_sums():
    figure = roof_waterfall(ROOF, source="by hand", coverage=0.94)
    bar = figure.data[0]
    assert list(bar.x) == [150, 60, 25, 65]
    assert list(bar.base) == [0, 90, 65, 0]
    assert "aten::mm could win most" in figure.layout.title.text
    assert "94 % of all time has a known roof" in figure.layout.title.subtitle.text


def test_products_by_size_and_speed():
    table = pd.DataFrame(
        {
            "name": ["aten::mm", "aten::bmm"],
            "dtype": ["bf16", "bf16"],
            "batch": [1, 4],
            "m": [64, 8],
            "n": [32, 8],
            "k": [16, 8],
            "time_ns": [30 * US, 10 * US],
            "tflop_s": [100.0, 10.0],
            "peak_share": [0.5, 0.05],
            "advice": [None, "join them"],
            "saving_ns": [np.nan, 9 * US],
        }
    )
    figure = gemm_speeds(table, source="by hand")
    line, plain, advised = figure.data
    assert list(line.y) == [200, 200]
    assert plain.x[0] == 2 * 64 * 32 * 16
    assert advised.x[0] == 4 * 2 * 8 * 8 * 8
    # (0.5 · 30 + 0.05 · 10) / 40
    assert "39 % of the peak" in figure.layout.title.text
    assert "could win 9.00 µs" in figure.layout.title.text


def test_a_tree_is_as_wide_as_it_costs_and_children_lie_below_their_parent():
    rows = [
        ("Net", "Net", 0, 80, 10),
        ("body", "Net > body", 1, 60, 9),
        ("0", "Net > body > 0", 2, 40, 9),
        ("head", "Net > head", 1, 20, 1),
        ("(optimizer)", "(optimizer)", 0, 20, 0),
    ]
    table = pd.DataFrame(rows, columns=["module", "path", "depth", "time_ns", "flops"])
    table["bytes"] = table["forward_ns"] = table["backward_ns"] = 1.0
    bar = module_tree(table).data[0]
    assert list(bar.base) == [0, 0, 0, 60, 80]
    assert list(bar.x) == [80, 60, 40, 20, 20]
    assert list(bar.y) == [0, 1, 2, 1, 0]
    by_flops = module_tree(table, by="flops", source="the hooks of one more step")
    assert "modules by the hooks of one more step" in by_flops.layout.title.subtitle.text
    assert list(by_flops.data[0].x) == [100, 90, 90, 10]
    assert "takes 90 % of the FLOPs" in by_flops.layout.title.text


def test_names_are_escaped_and_nothing_is_drawn_of_nothing():
    hostile = ROOF.assign(name="<img src=x onerror=alert(1)>")
    for figure in (
        roofline_points(hostile, peaks=PEAKS, bytes_per_s=200e9),
        roof_waterfall(hostile),
    ):
        assert "<img" not in figure.to_json()
    for empty in (
        roofline_points(None),
        roofline_points(ROOF, peaks=PEAKS),
        roof_waterfall(None),
        gemm_speeds(None),
        module_tree(None),
    ):
        assert is_unmeasured(empty)
