"""Numbers for people: three significant digits, a fitting unit, and never 0 for what is not 0."""

import pytest

from workbench.units import bytes_text, count_text, share_text, significant, time_text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "not measured"),
        (0, "0 ns"),
        (1, "1.00 ns"),
        (999, "999 ns"),
        (999.6, "1.00 µs"),
        (12_345, "12.3 µs"),
        (1_500_000, "1.50 ms"),
        (99_960_000, "100 ms"),
        (999_900_000, "1.00 s"),
        (1_234_000_000_000, "1\u2009230 s"),
    ],
)
def test_times_take_the_unit_that_leaves_few_digits(ns: float | None, text: str) -> None:
    assert time_text(ns) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "not measured"),
        (0, "0.0 %"),
        (0.0004, "< 0.1 %"),
        (0.04, "4.0 %"),
        (0.0996, "10 %"),
        (0.47, "47 %"),
        (0.994, "99 %"),
        (0.9951, "99.5 %"),
        (0.99999, "99.9 %"),
        (1, "100 %"),
    ],
)
def test_shares_have_a_decimal_below_ten_percent(share: float | None, text: str) -> None:
    assert share_text(share) == text


def test_thousands_are_set_apart_by_thin_spaces() -> None:
    assert count_text(1_234_567) == "1\u2009234\u2009567"
    assert bytes_text(1_250_000_000) == "1.25 GB"
    assert significant(0.00123) == "0.00123"
