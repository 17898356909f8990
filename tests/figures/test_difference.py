"""Difference bars: less to the left, more to the right, and nothing claimed inside the noise."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from workbench.figures import palette
from workbench.figures.difference import FAINT, brief, difference_bars
from workbench.figures.empty import reason_of

MS = 1_000_000


def row(name: str, before: float, after: float, change: str, **rest: Any) -> dict[str, Any]:
    """Times in ms; the interval is a tenth of the difference to both sides."""
    first, second = before * MS, after * MS
    wide = abs(second - first) / 10
    made = {
        "name": name,
        "name_first": name,
        "match": "same name",
        "group": "gemm",
        "change": change,
        "calls_first": 1.0,
        "calls_second": 1.0,
        "first_ns": first,
        "second_ns": second,
        "difference_ns": second - first,
        "low_ns": second - first - wide,
        "high_ns": second - first + wide,
    }
    return made | rest


def table(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(rows))


def title(figure: Any) -> str:
    return str(figure.layout.title.text)


def labels(figure: Any) -> list[str]:
    return [note.text for note in figure.layout.annotations]


def test_faster_is_left_and_slower_right_of_the_line() -> None:
    drawn = difference_bars(
        table(row("slow", 1, 4, "slower"), row("fast", 9, 1, "faster")), of="kernels"
    )
    assert list(drawn.data[0].x) == [-8, 3]
    assert title(drawn) == "fast takes 8.00 ms less a step"
    assert "<b>−8.00 ms</b>  ▲ faster" in labels(drawn)
    assert "<b>+3.00 ms</b>  ▼ slower" in labels(drawn)
    assert "together 5.00 ms less" in drawn.layout.title.subtitle.text


def test_what_proves_nothing_is_faint_and_makes_no_title() -> None:
    drawn = difference_bars(
        table(row("noise", 1, 4, "same"), row("small", 2, 3, "slower")), of="kernels"
    )
    assert list(drawn.data[0].marker.opacity) == [FAINT, 1.0]
    assert title(drawn) == "small takes 1.00 ms more a step"


def test_only_noise_is_no_difference() -> None:
    drawn = difference_bars(table(row("noise", 1, 4, "same")), of="kernels")
    assert title(drawn) == (
        "No difference of a kernel between before and after is beyond what steps differ by"
    )


def test_one_step_cannot_be_told_from_chance() -> None:
    lonely = row("mm", 1, 4, "cannot_tell", low_ns=np.nan, high_ns=np.nan)
    assert "can be told from chance" in title(difference_bars(table(lonely), of="kernels"))


def test_added_and_removed_are_marked() -> None:
    drawn = difference_bars(
        table(row("new", 0, 4, "added"), row("old", 3, 0, "removed")), of="kernels"
    )
    assert list(drawn.data[0].marker.line.width) == [1, 1]
    assert title(drawn) == "new is added: 4.00 ms a step"
    assert {"<b>+4.00 ms</b>  + added", "<b>−3.00 ms</b>  − removed"} <= set(labels(drawn))


def test_parts_of_a_step_have_their_own_colours_and_are_less_not_faster() -> None:
    drawn = difference_bars(table(row("input", 9, 1, "faster")), of="breakdown")
    assert drawn.data[0].marker.color[0] == palette.category("input").colour
    assert "<b>−8.00 ms</b>  ▲ less" in labels(drawn)


def test_of_many_rows_the_largest_are_drawn_and_the_rest_is_one() -> None:
    """15 rows of 6 to 20 ms, and 5 of 1 to 5 ms that together are 15."""
    drawn = difference_bars(
        table(*(row(f"k{n}", 0, n, "added") for n in range(1, 21))), of="kernels"
    )
    assert len(drawn.data[0].x) == 16
    assert drawn.data[0].x[-1] == 15
    assert "5 other kernels" in labels(drawn)


def test_equal_sides_have_nothing_to_draw() -> None:
    drawn = difference_bars(table(row("mm", 4, 4, "same")), of="kernels")
    assert title(drawn) == "No kernel differs between before and after"
    assert reason_of(drawn) == "1 kernel compared."


def test_what_one_side_did_not_record_is_not_drawn_as_zero() -> None:
    only = row("input", 9, np.nan, "not_measured")
    drawn = difference_bars(table(only, row("compute", 5, 4, "faster")), of="breakdown")
    assert list(drawn.data[0].x) == [-1]


def test_without_a_table_it_is_not_measured() -> None:
    assert reason_of(difference_bars(None, of="kernels", reason="CPU only")) == "CPU only"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("void at::native::add<float>(int, (anonymous namespace)::F)", "add<float>"),
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"),
        ("(odd)", "(odd)"),
        ("void f<g()>(int (*)(int))", "f<g()>"),
        (")", ")"),
    ],
)
def test_brief_names(name: str, told: str) -> None:
    assert brief(name) == told


def test_what_only_one_side_has_is_no_title_below_larger_chance() -> None:
    """A copy differs by 3 ms, which is chance; aten::cat of 1 ms ran on one side only."""
    drawn = difference_bars(
        table(row("aten::copy_", 1, 4, "same"), row("aten::cat", 1, 0, "removed")), of="operators"
    )
    assert title(drawn) == (
        "No difference of an operator between before and after is beyond what steps differ by; "
        "1 removed"
    )
    beyond = row("aten::mm", 4, 2, "faster")
    drawn = difference_bars(
        table(row("aten::copy_", 1, 4, "same"), row("x", 2.5, 0, "removed"), beyond), of="operators"
    )
    assert title(drawn) == "aten::mm takes 2.00 ms less a step"


def test_what_is_removed_leads_where_it_is_the_largest() -> None:
    drawn = difference_bars(
        table(row("aten::copy_", 1, 2, "same"), row("aten::cat", 4, 0, "removed")), of="operators"
    )
    assert title(drawn) == "aten::cat is removed: 4.00 ms a step"
