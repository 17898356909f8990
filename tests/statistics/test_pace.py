"""What is the pace of a loop whose steps come in rounds?"""

import pytest

from workbench.statistics.blocks import evened, period


def test_two_workers_that_hand_over_together_give_the_pace_between_waiting_and_ready():
    # 80 ms, 0, 80 ms, 0 …: two batches in 80 ms are 40 ms a step.
    assert evened([80, 0, 80, 0, 80, 0], 2) == (40, 40, 40, 40, 40, 40)


def test_one_step_is_its_own_pace():
    assert evened([3, 1, 2], 1) == (3, 1, 2)


def test_a_period_longer_than_the_block_gives_its_mean():
    assert evened([1, 2, 6], 10) == (3, 3, 3)


def test_a_wild_step_is_in_as_many_values_as_a_period_has():
    found = evened([10] * 4 + [100] + [10] * 4, 3)
    assert found == pytest.approx((10, 10, 10, 40, 40, 40, 10, 10, 10))


def test_no_step_has_no_pace():
    assert evened([], 2) == ()


def test_the_pattern_repeats_with_the_workers_or_with_the_epoch_that_starts_them():
    assert period({"workers": 4}, 20) == 4
    assert period({"workers": 0}, 20) == period({}, 20) == 1
    short = {"workers": 4, "batches_per_epoch": 8}
    assert period(short, 20) == 20
    assert period({**short, "persistent_workers": True}, 20) == 4
    assert period({**short, "workers": 0}, 20) == 1
    assert period({**short, "batches_per_epoch": None}, 20) == 4
