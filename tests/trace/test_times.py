"""Every stamp is an exact nanosecond, and impossible ones stretch no axis."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kineto import Kineto
from tests.trace.reference import codes, names
from workbench import trace
from workbench.trace import stamps


def read(text: str) -> Any:
    return trace.read(('{"traceEvents": [' + text + "]}").encode())


def x(ts: str, dur: str = "1", name: str = "op") -> str:
    return f'{{"ph": "X", "cat": "cpu_op", "name": "{name}", "ts": {ts}, "dur": {dur}}}'


@given(st.integers(0, 2**43 * 1000 - 1000))
def test_below_101_days_a_double_tells_the_nanosecond(ns: int) -> None:
    us = np.array([float(f"{ns // 1000}.{ns % 1000:03d}")])
    assert stamps.fits_doubles(us)
    assert stamps.from_doubles(us).tolist() == [ns]


def test_rounding_the_product_at_once_would_be_wrong_there() -> None:
    # 4458676416788.033 us: the product lies half-way between two doubles that numpy rounds up.
    ns = list(range(4_450_000_000_000_000, 4_450_000_000_001_000))
    us = np.array([float(f"{n // 1000}.{n % 1000:03d}") for n in ns])
    assert (np.rint(us * 1000).astype(np.int64) != np.array(ns)).any()
    assert stamps.from_doubles(us).tolist() == ns


def test_unix_time_with_nanoseconds_is_exact() -> None:
    # A double of 1.7e15 holds quarters of a microsecond: .491 would become .5
    found = read(x("1704161511420306.491") + "," + x("1704161511420306.492"))
    assert found.events.ts.tolist() == [0, 1]
    assert found.base_ns == 1704161511420306491


@pytest.mark.parametrize("quoted", [True, False])
def test_numbers_may_be_text(quoted: bool) -> None:
    q = '"' if quoted else ""
    found = read(x(f"{q}1704161511420306.491{q}", f"{q}2.25{q}"))
    assert found.base_ns == 1704161511420306491
    assert found.events.dur.tolist() == [2250]


def test_the_base_time_is_added() -> None:
    made = Kineto(base_ns=1_700_000_000_000_000_000)
    made.op("a", 1000.5, 1)
    assert trace.read(json.dumps(made.document()).encode()).base_ns == 1_700_000_000_001_000_500


def test_without_a_base_relative_time_stays_relative() -> None:
    found = read(x("5"))
    assert (found.base_ns, found.events.ts.tolist()) == (None, [0])


def test_kernels_without_time_do_not_stretch_the_axis_to_1970() -> None:
    made = Kineto(gpu=True)
    start = 1_700_000_000_000_000
    for i in range(10):
        made.kernel("good", start + 10 * i, 5)
        made.kernel("lost", 0, 0)
    found = trace.read(json.dumps(made.document()).encode())
    assert names(found) == ["good"] * 10
    assert found.events.ts.max() == 90_000
    (told,) = found.violations
    assert (told.code, told.count, told.share) == ("zero_timestamps", 10, 0.5)
    assert "incomplete" in told.message
    assert "busy" in told.voids


def test_a_recording_that_starts_at_zero_is_whole() -> None:
    found = read(x("0", "0") + "," + x("0", "10") + "," + x("20"))
    assert found.events.ts.tolist() == [0, 0, 20_000]
    assert found.violations == ()


@pytest.mark.parametrize(
    ("odd", "code"),
    [
        (x("1e30"), "missing_timestamps"),
        (x("null"), "missing_timestamps"),
        (x("true"), "missing_timestamps"),
        (x('"soon"'), "missing_timestamps"),
        (x("[1]"), "missing_timestamps"),
        ('{"ph": "X", "name": "no ts"}', "missing_timestamps"),
        (x("9000000000000000000"), "missing_timestamps"),
        (x("3e12"), "absurd_timestamps"),
        (x("100", "-5"), "negative_duration"),
        (x("100", "18446744073709551.615"), "absurd_duration"),
        (x("100", "90000000000"), "absurd_duration"),
    ],
)
def test_impossible_times_are_left_out_and_counted(odd: str, code: str) -> None:
    found = read(",".join([x("100"), odd, x("300", name="last")]))
    assert names(found) == ["op", "last"]
    assert found.events.ts.tolist() == [0, 200_000]
    assert codes(found) == {code: 1}


def test_a_missing_duration_is_a_moment() -> None:
    found = read(
        '{"ph": "X", "name": "a", "ts": 5}, {"ph": "X", "name": "b", "ts": 5, "dur": null}'
    )
    assert found.events.dur.tolist() == [0, 0]


def test_longer_events_come_first_and_equal_ones_keep_the_file_order() -> None:
    found = read(",".join([x("5", "1", "a"), x("5", "9", "b"), x("1", "1", "c"), x("5", "1", "d")]))
    assert names(found) == ["c", "b", "a", "d"]


def test_large_and_small_stamps_in_one_file_are_each_exact() -> None:
    # Pieces with small stamps are read as doubles, the first large one changes that for the rest.
    small = [x(f"{8_000_000_000_000 + i}.{i % 1000:03d}") for i in range(20_000)]
    large = [x(f"{8_800_000_000_000 + i}.{i % 1000:03d}") for i in range(5_000)]
    # Both lie within two weeks, so that none is out of place; 8.796e12 is where doubles end.
    found = read(",".join(small + large))
    expected = [i * 1000 + i % 1000 for i in range(20_000)]
    expected += [800_000_000_000_000 + i * 1000 + i % 1000 for i in range(5_000)]
    kept = set(found.events.ts.tolist())
    assert kept <= set(expected)
    assert set(expected[:20_000]) <= kept
