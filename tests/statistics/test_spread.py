"""Rows of a few steps: named only when they differ by more than steps differ by themselves."""

import numpy as np
import pytest

from workbench.statistics.spread import LEAST_SHARE, compare_rows


def rows(*values: list[float]) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_welch_by_hand() -> None:
    """Means 10 and 20; variances 1 and 4 over 3 steps: error² = 1/3 + 4/3, error = 1.291.

    Freedom = (5/3)² / ((1/3)²/2 + (4/3)²/2) = 2.94, so t lies a little above the 3.18 that tables
    give for 3 degrees, and well below the 4.30 for 2.
    """
    found = compare_rows(rows([9, 10, 11]), rows([18, 20, 22]))
    assert found.difference[0] == 10
    assert 3.18 < found.margin[0] / (5 / 3) ** 0.5 < 3.25
    assert found.beyond[0]


def test_inside_the_spread_is_not_named() -> None:
    found = compare_rows(rows([90, 100, 110]), rows([95, 108, 118]))
    assert found.difference[0] == pytest.approx(7)
    assert not found.beyond[0]


def test_one_step_tells_no_spread() -> None:
    found = compare_rows(rows([100.0]), rows([200.0]))
    assert found.difference[0] == 100
    assert np.isnan(found.margin[0])
    assert not found.beyond[0]


def test_equal_values_do_not_differ_and_unequal_constants_do() -> None:
    found = compare_rows(rows([5, 5], [5, 5]), rows([5, 5], [6, 6]))
    assert found.beyond.tolist() == [False, True]


def test_stamps_rounded_to_a_microsecond_do_not_make_steps_equal() -> None:
    """Two steps of one call each show 3 µs against 4: it may have been 3.4 against 3.6.

    Both stamps of a call are rounded, so its duration varies by 1000²/12 twice.
    """
    a, b, rounding = rows([3000, 3000]), rows([4000, 4000]), 1000.0**2 / 6
    assert compare_rows(a, b).beyond[0]
    assert not compare_rows(a, b, rounding_a=rounding, rounding_b=rounding).beyond[0]


def test_less_than_the_drift_of_clocks_is_not_named() -> None:
    a = rows([1000.0, 1000.1, 999.9])
    assert not compare_rows(a, a * (1 + 0.9 * LEAST_SHARE)).beyond[0]
    assert compare_rows(a, a * (1 + 1.5 * LEAST_SHARE)).beyond[0]


def test_of_many_rows_of_pure_noise_almost_none_is_named() -> None:
    """200 tables of 100 equal rows: naming any in more than 10 % of them would be chance."""
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(200):
        a, b = (1000 * rng.normal(1, 0.05, (100, 5)) for _ in "ab")
        wrong += bool(compare_rows(a, b).beyond.any())
    assert wrong <= 20


def test_one_true_change_among_many_rows_is_found() -> None:
    rng = np.random.default_rng(8)
    a, b = (1000 * rng.normal(1, 0.01, (100, 6)) for _ in "ab")
    b[17] *= 1.3
    assert compare_rows(a, b).beyond.tolist() == [i == 17 for i in range(100)]


def test_no_rows_at_all() -> None:
    assert len(compare_rows(np.empty((0, 3)), np.empty((0, 4))).difference) == 0
