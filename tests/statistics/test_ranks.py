"""The exact chance of ranks, against counting by hand and against scipy."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from workbench.statistics.ranks import chance_of_more


def test_all_of_four_above_all_of_four_is_one_order_of_seventy():
    assert chance_of_more(np.arange(4.0), np.arange(4.0) + 10) == pytest.approx(1 / 70)
    assert chance_of_more(np.arange(4.0) + 10, np.arange(4.0)) == 1.0


@pytest.mark.parametrize("count", [5, 8, 30])
def test_it_is_scipys(count: int):
    rng = np.random.default_rng(count)
    a, b = rng.standard_normal(count), rng.standard_normal(count) + 0.7
    method = "exact" if count < 20 else "asymptotic"
    expected = mannwhitneyu(b, a, alternative="greater", method=method).pvalue
    assert chance_of_more(a, b) == pytest.approx(expected)
