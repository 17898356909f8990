"""Tables: numbers through units, missing never zero, text twins aligned."""

import numpy as np
import pandas as pd
import pytest

from tests.pages.hostile import Page
from workbench.pages.frames import idle_table, kernels_table, operators_table, steps_table
from workbench.pages.table import Column, Kind, Table, cell_text, table_html, table_text

MS = 1_000_000


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1_234_567, "time", "1.23 ms"),
        (0.391, "share", "39 %"),
        (0.0391, "share", "3.9 %"),
        (12_345, "count", "12\u2009345"),
        (2_500_000, "bytes", "2.50 MB"),
        (1.646, "number", "1.65"),
        (np.int64(5_000), "time", "5.00 µs"),
        (True, "flag", "yes"),
        (0, "time", "0 ns"),
    ],
)
def test_a_value_reads_as_people_write_it(value: object, kind: Kind, text: str):
    assert cell_text(value, kind) == text


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("kind", ["time", "share", "count", "bytes", "text"])
def test_missing_is_not_measured(missing: object, kind: Kind):
    assert cell_text(missing, kind) == "not measured"


def test_a_flag_that_the_name_does_not_tell_is_not_known():
    assert cell_text(None, "flag") == "not known"


def test_numbers_are_right_aligned_and_missing_is_greyed():
    table = Table(caption="T", columns=(Column(name="t", kind="time"),), rows=((5,), (None,)))
    html = table_html(table)
    assert '<td class="wb-number">5.00 ns</td>' in html
    assert '<td class="wb-number wb-quiet">not measured</td>' in html


def test_text_twin_lines_up():
    columns = (Column(name="name"), Column(name="time", kind="time"))
    table = Table(caption="T", columns=columns, rows=(("a", 5), ("long", 12_345)), left_out=3)
    assert table_text(table).splitlines() == [
        "T",
        "name     time",
        "a     5.00 ns",
        "long  12.3 µs",
        "and 3 more not listed",
    ]


def test_rows_left_out_are_said_in_the_page_too():
    table = Table(caption="T", columns=(Column(name="a"),), rows=(("x",),), left_out=2)
    assert "and 2 more not listed" in Page(table_html(table)).words


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="1 columns, but a row of 2"):
        Table(caption="T", columns=(Column(name="a"),), rows=((1, 2),))


def test_kernels_are_longest_first():
    frame = pd.DataFrame({"name": ["a", "b"], "calls": [1, 1], "total_ns": [5, 9]})
    assert [row[0] for row in kernels_table(frame).rows] == ["b", "a"]


def test_only_the_first_rows_are_listed():
    frame = pd.DataFrame({"name": [f"k{i}" for i in range(100)], "total_ns": range(100)})
    table = kernels_table(frame, limit=10)
    assert (len(table.rows), table.left_out) == (10, 90)


def test_operators_without_a_device_have_no_device_time():
    frame = pd.DataFrame(
        {
            "name": ["a"],
            "calls": [1],
            "host_self_ns": [5],
            "host_total_ns": [9],
            "device_ns": np.nan,
        }
    )
    assert "not measured" in table_text(operators_table(frame))


def test_step_statistics_leave_warmup_out():
    table = steps_table([900 * MS, 10 * MS, 12 * MS], warmup=1, input_ns=[800 * MS, MS, MS])
    assert "900 ms" not in table_text(table)
    assert table.rows[0][:3] == ("step time", 2, 11 * MS)
    assert "needs 20 steps" in table_text(table)


def test_idle_cause_without_measurement_is_last_and_said():
    table = idle_table({"garbage_collection": None, "launch": 0, "input": 50}, 100)
    assert table.rows[0][0] == "input"
    assert "garbage collection  not measured" in table_text(table)


def test_names_are_shortened_to_what_the_terminal_has_room_for():
    """Of 40 columns the times take 7 and the gap 2: 31 are left for the name."""
    table = Table(
        caption="Kernels",
        columns=(Column(name="kernel", kind="name"), Column(name="total", kind="time")),
        rows=(("void at::native::" + "x" * 200, 1_234_000),),
    )
    lines = table_text(table, width=40).splitlines()
    assert max(map(len, lines)) == 40
    assert lines[2].startswith("void at::native::"[:15])
    assert lines[2].endswith("1.23 ms")


def test_a_step_alone_says_what_it_lacks():
    (row,) = steps_table([], warmup=0, input_ns=None).rows
    assert row == ("step time", 0, *["needs 2 steps"] * 5)
