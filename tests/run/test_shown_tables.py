"""Tables show units and keep nanoseconds; what nobody measured is said once."""

from pathlib import Path

import pandas as pd
import pytest

import workbench as wb
from tests.run.test_open import gpu_trace
from workbench.run.shown import MOST_ROWS, Shown, in_nanoseconds

TABLE = Shown(
    {
        "name": ["a", "b"],
        "time_ns": [9_265_356.0, 11_908_610.0],
        "start_ns": [1_000_250_000, 1_000_500_000],
        "share": [0.431, 0.569],
        "bytes": [2_000_000, 512],
        "calls": [3, 4],
        "shapes": [(), ("[2, 3]",)],
        "device_ns": [None, None],
        "<b>": ["<i>x</i>", "y"],
    }
)


@pytest.mark.parametrize("show", [repr, Shown._repr_html_], ids=["text", "page"])
def test_what_is_shown_has_units(show) -> None:  # noqa: ANN001
    """9 265 356 ns are 9.27 ms; moments keep what tells neighbours apart."""
    text = show(TABLE)
    for told in ("9.27 ms", "1000.250 ms", "43 %", "2.00 MB", "512 B", "none", "[2, 3]"):
        assert told in text, told
    assert "9265356" not in text
    assert "not measured: device_ns" in text
    assert "..." not in text, "no column is cut"


def test_the_data_are_what_they_were() -> None:
    assert TABLE["time_ns"].sum() == 21_173_966
    assert isinstance(TABLE, pd.DataFrame)
    assert "9.27 ms" in repr(TABLE[TABLE["calls"] < 4]), "a selection shows itself as well"
    assert list(TABLE.columns)[1] == "time_ns"


def test_foreign_text_is_no_page() -> None:
    assert "<i>" not in TABLE._repr_html_()


def test_long_tables_are_cut_and_say_so() -> None:
    text = repr(Shown({"step": range(100)}))
    assert "and 70 more rows" in text
    assert len(text.splitlines()) == MOST_ROWS + 2


def test_a_table_of_times_without_the_suffix_is_one_of_times() -> None:
    shown = repr(in_nanoseconds(pd.DataFrame({"rank": [0, 1], "forward": [1_500_000, 2_000_000]})))
    assert "1.50 ms" in shown
    assert "1.00 ns" not in shown


def test_names_with_their_times_are_told_with_units(tmp_path: Path) -> None:
    """Idle from 1090 to 1150; the loader takes 1100 to 1130."""
    run = wb.open(gpu_trace().write(tmp_path / "t.json"))
    assert run.gaps is not None
    text = repr(run.gaps)
    assert "input 30.0 µs" in text
    assert "('" not in text
    assert dict(run.gaps["causes"].iloc[0])["input"] == 30_000


def test_columns_named_as_shares_are_told_in_percent() -> None:
    from workbench.run.shown import with_shares

    text = repr(with_shares(pd.DataFrame({"ranks": [4], "efficiency": [0.875]}), "efficiency"))
    assert "88 %" in text
    assert "ranks" in text
    assert "400" not in text, "a count is no share"
