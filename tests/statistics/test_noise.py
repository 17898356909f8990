"""How far do two measurements of the same thing differ?"""

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.statistics.noise import noise_floor


def test_two_blocks_differ_by_the_ratio_of_their_medians():
    assert noise_floor([[100, 100, 101], [110, 110, 150]]) == pytest.approx(0.10)


def test_order_of_the_blocks_does_not_matter_for_two():
    assert noise_floor([[110] * 3, [100] * 3]) == pytest.approx(0.10)


def test_equal_blocks_have_a_floor_of_zero_which_is_not_none():
    assert noise_floor([[100] * 5, [100] * 5]) == 0.0


@pytest.mark.parametrize("blocks", [[], [[100] * 20], [[100] * 20, [100, 100]]])
def test_nothing_repeated_is_not_measured(blocks: list[list[float]]):
    assert noise_floor(blocks) is None


def test_a_drift_through_four_blocks_is_seen_between_the_halves():
    # Earlier half 100 and 102, later half 118 and 120: 119 over 101, as geometric middles.
    floor = noise_floor([[100] * 4, [102] * 4, [118] * 4, [120] * 4])
    assert floor == pytest.approx(np.sqrt(118 * 120 / (100 * 102)) - 1)


def test_one_wild_block_of_ten_does_not_decide():
    blocks = [[100.0 + i] * 5 for i in (0, 1, 0, 1, 0, 1, 0, 1, 0)] + [[400.0] * 5]
    assert noise_floor(blocks) == pytest.approx(0.01, abs=0.01)


def test_a_step_of_zero_is_refused_since_it_was_not_measured():
    with pytest.raises(WorkbenchError, match="zero"):
        noise_floor([[100, 0, 100], [100, 100, 100]])
