"""Stamps as text: every one of a batch becomes the nanosecond that exact arithmetic gives."""

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from workbench.trace.stamps import INVALID, from_values

WHOLE = st.integers(0, 10**18).map(str)
DECIMALS = st.builds(
    lambda whole, part, places: f"{whole}.{part:0{places}d}"[: len(str(whole)) + 1 + places],
    st.integers(0, 10**17),
    st.integers(0, 999_999),
    st.integers(1, 6),
)
OTHERS = st.sampled_from(["-5", "-5.125", "1e3", "1.5E-3", "0.0005", "-0.0", '"12.25"', '"7"'])


def exactly(text: str) -> int:
    ns = Decimal(text.strip('"')) * 1000
    whole = int(ns.to_integral_value(ROUND_HALF_EVEN))
    return whole if abs(ns) < Decimal("9.2e18") else INVALID


@given(st.lists(WHOLE | DECIMALS | OTHERS, max_size=40))
@example(["1700000000000000.123", "1700000000000000.124"])  # in a double both are the same
@example(["9199999999999999.999", "9200000000000000.000", "9999999999999999.999"])
@example(["9199999999999999", "9200000000000000", "9999999999999999"])
def test_a_batch_of_texts_is_exact(texts: list[str]) -> None:
    found = from_values([Raw(text.encode()) for text in texts])

    assert found.tolist() == [exactly(text) for text in texts]


@pytest.mark.parametrize("text", ["null", "true", '"noon"', "[1]", '""', "", '"1.5.3"', '"١٢"x'])
def test_what_is_no_number_has_no_stamp(text: str) -> None:
    assert from_values([Raw(b"1.000"), Raw(text.encode())]).tolist() == [1000, INVALID]
