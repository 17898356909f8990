"""Kernels and operators: longest first, names never read as markup, the rest said."""

import numpy as np
import pandas as pd
import pytest

from workbench.figures import names
from workbench.figures.empty import reason_of
from workbench.figures.kernels import kernel_times
from workbench.figures.operators import operator_times

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><b>",
    "line\u2028separator\u202eturned",
    "%{customdata[0]}",
    "$\\alpha$",
]


def _kernels(totals: list[int], names_of: list[str] | None = None) -> pd.DataFrame:
    count = len(totals)
    return pd.DataFrame(
        {
            "device": 0,
            "name": names_of or [f"kernel_{i}" for i in range(count)],
            "family": "gemm",
            "calls": 2,
            "total_ns": totals,
            "median_ns": np.array(totals) // 2,
            "share": 0.0,
            "tensor_core": None,
        }
    )


def _operators(**columns: list[float]) -> pd.DataFrame:
    count = len(columns["host_self_ns"])
    blank = {"name": [f"aten::op{i}" for i in range(count)], "calls": 1, "host_total_ns": 0}
    return pd.DataFrame({**blank, "device_ns": np.nan, **columns})


def test_title_says_how_few_kernels_hold_the_time():
    figure = kernel_times(_kernels([70, 15, 10, 5]))
    assert figure.layout.title.text == "2 of 4 kernels take 85 % of the kernel time"


def test_longest_kernel_is_on_top():
    figure = kernel_times(_kernels([5, 70, 10]))
    assert figure.layout.annotations[0].text == "kernel_1"
    assert list(figure.data[0].x) == sorted(figure.data[0].x, reverse=True)


def test_what_is_not_drawn_is_said_with_its_share():
    figure = kernel_times(_kernels([80, 10, 10]), limit=1)
    assert len(figure.data[0].x) == 1
    assert figure.layout.title.subtitle.text.endswith("not drawn: 2 more with 20 %")


def test_kernels_whose_shortened_names_agree_stay_apart():
    long = "x" * 60 + "{}" + "y" * 60
    figure = kernel_times(_kernels([60, 40], [long.format("A"), long.format("B")]))
    assert len(figure.data[0].x) == 2
    assert figure.layout.annotations[0].text == figure.layout.annotations[2].text


def test_full_name_is_in_the_tooltip():
    name = "void at::native::" + "template<int>" * 20
    hover = kernel_times(_kernels([1], [name])).data[0].customdata[0]
    assert hover.replace("<br>", "").replace("&lt;", "<").replace("&gt;", ">").count(name) == 1


def test_communication_and_copies_keep_their_colours():
    frame = _kernels([3, 2, 1], ["ncclDevKernel_AllReduce", "Memcpy HtoD", "sgemm"])
    frame["family"] = ["communication", "copy", "gemm"]
    colours = kernel_times(frame).data[0].marker.color
    assert list(colours) == ["#D55E00", "#CC79A7", "#0072B2"]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_is_read_as_markup_formula_or_template(name: str):
    for figure in (
        kernel_times(_kernels([1], [name])),
        operator_times(_operators(name=[name], host_self_ns=[1])),
    ):
        drawn = [a.text for a in figure.layout.annotations] + list(figure.data[0].customdata)
        drawn.append(figure.layout.title.text)
        for text in drawn:
            rest = text.replace("<br>", "").replace("<b>", "").replace("</b>", "")
            assert not set("<>$\u2028\u202e") & set(rest)
        assert figure.data[0].hovertemplate == "%{customdata}<extra></extra>"


def test_operators_are_ranked_by_device_time_where_there_is_any():
    frame = _operators(host_self_ns=[9, 1], device_ns=[10, 90])
    figure = operator_times(frame)
    assert figure.layout.title.text == "Most device time is launched inside aten::op1: 90.0 ns"
    assert figure.data[0].marker.color[0] == "#0072B2"


def test_device_time_of_a_wrapper_and_its_inside_is_never_added_up():
    frame = _operators(host_self_ns=[1, 1], device_ns=[100, 100])
    figure = operator_times(frame)
    assert "%" not in figure.to_json().replace("%{customdata}", "")
    assert "rows overlap" in figure.layout.title.subtitle.text


def test_operators_without_a_device_are_ranked_by_their_own_host_time():
    figure = operator_times(_operators(host_self_ns=[75, 25]))
    assert figure.layout.title.text == "aten::op0 takes 75 % of the operators' host time"
    assert "not measured" not in figure.data[0].customdata[0]
    assert "device:" not in figure.data[0].customdata[0]


@pytest.mark.parametrize("frame", [None, _kernels([]), _kernels([0, 0])])
def test_no_kernel_time_is_not_measured(frame: pd.DataFrame | None):
    assert reason_of(kernel_times(frame, reason="CPU only.")) == "CPU only."


def test_middle_of_a_name_is_left_out():
    short = names.shorten("abcdefghij", 7)
    assert short == "abcd…ij"
    assert len(short) == 7


def test_a_hundred_thousand_kernels_stay_small():
    figure = kernel_times(_kernels([10] * 100_000, ["n" * 1500 for _ in range(100_000)]))
    assert len(figure.to_json()) < 100_000


def test_copies_are_not_counted_as_launches_of_kernels():
    one = _kernels([5])
    one["calls"] = 1
    said = kernel_times(one).layout.title.subtitle.text
    assert said == "5.00 ns, summed over 1 kernel, copies and sets included"
