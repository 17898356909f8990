"""Faster, slower, or cannot tell?"""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from tests.statistics.machines import NOISES, steps
from workbench.statistics.change import Change, compare_steps
from workbench.statistics.ranks import interval_rank, shift_interval

pytestmark = pytest.mark.slow


TRIALS = 400
AT_MOST = 28
"""7 % of the trials: 5 % is allowed in truth, and 400 trials scatter by 1.1 % around it."""


def test_a_clear_gain_is_faster_with_its_interval():
    a = [[100, 101, 99], [100, 102, 100], [101, 100, 99], [100, 99, 101]]
    b = [[80, 81, 79], [80, 82, 80], [81, 80, 79], [80, 79, 81]]
    change = compare_steps(a, b)
    assert change.verdict == "faster"
    assert change.ratio == pytest.approx(0.8)
    assert 0.78 < change.low <= change.ratio <= change.high < 0.82
    assert (change.n_a, change.n_b) == (12, 12)
    assert change.reason is None


def test_exchanging_the_sides_turns_the_answer_around():
    rng = np.random.default_rng(1)
    a = [steps("quiet", rng, 5) for _ in range(4)]
    b = [steps("quiet", rng, 5) * 1.3 for _ in range(4)]
    there, back = compare_steps(a, b), compare_steps(b, a)
    assert (there.verdict, back.verdict) == ("slower", "faster")
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert (back.low, back.high) == pytest.approx((1 / there.high, 1 / there.low))


def test_one_wild_step_in_each_block_changes_nothing():
    calm = [[100.0] * 5 for _ in range(4)]
    wild = [[100.0, 100.0, 9000.0, 100.0, 100.0] for _ in range(4)]
    assert compare_steps(calm, wild).ratio == 1.0


def test_a_difference_inside_the_drift_of_one_side_is_not_told():
    # Side a slowed down by 20 % while it was measured; b is 15 % off its middle.
    a = [[100] * 5, [101] * 5, [119] * 5, [120] * 5]
    b = [[126] * 5, [126] * 5, [127] * 5, [127] * 5]
    change = compare_steps(a, b)
    assert change.verdict == "cannot_tell"
    assert change.low < 1 < change.high
    assert change.noise_floor == pytest.approx(0.19, abs=0.01)
    assert "within" in change.reason


def test_the_interval_is_never_narrower_than_the_noise_floor():
    rng = np.random.default_rng(2)
    for _ in range(50):
        a, b = ([steps("heavy_tail", rng, 5) for _ in range(6)] for _ in range(2))
        change = compare_steps(a, b)
        assert change.smallest_effect >= change.noise_floor - 1e-12


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ([], [[100] * 9] * 4, "no block"),
        ([[100, 100]] * 4, [[100] * 9] * 4, "no block"),
        ([[100] * 40], [[50] * 9] * 4, "one block only"),
        ([[100] * 5] * 2, [[50] * 5] * 2, "too few or too short"),
    ],
)
def test_too_little_data_cannot_tell_and_says_what_is_missing(a: list, b: list, said: str):
    change = compare_steps(a, b)
    assert change.verdict == "cannot_tell"
    assert said in change.reason
    assert change.low is None
    assert change.smallest_effect is None


def test_without_data_there_is_no_ratio():
    change = compare_steps([], [])
    assert change == Change(verdict="cannot_tell", ratio=None, n_a=0, n_b=0, reason=change.reason)


def test_two_long_blocks_a_side_are_enough_when_they_agree():
    rng = np.random.default_rng(3)
    a = [steps("quiet", rng, 10) for _ in range(2)]
    b = [steps("quiet", rng, 10) * 0.7 for _ in range(2)]
    assert compare_steps(a, b).verdict == "faster"


@pytest.mark.parametrize(
    ("drift", "shape"),
    [
        (0.0, (4, 5)),
        *(
            pytest.param(drift, shape, marks=pytest.mark.soak)
            for drift, shape in ((0.0, (2, 10)), (0.0, (10, 5)), (0.03, (2, 10)), (0.03, (10, 5)))
        ),
        (0.03, (4, 5)),
    ],
)
@pytest.mark.parametrize("noise", NOISES)
def test_the_same_thing_is_seldom_called_faster_or_slower(
    noise: str, drift: float, shape: tuple[int, int]
):
    blocks, length = shape
    rng = np.random.default_rng(4)
    wrong = 0
    for _ in range(TRIALS):
        a, b = (_side(noise, rng, blocks, length, drift) for _ in range(2))
        wrong += compare_steps(a, b).verdict != "cannot_tell"
    assert wrong <= AT_MOST


@pytest.mark.parametrize("noise", NOISES)
def test_taking_turns_holds_in_one_continuous_series(noise: str):
    # Neighbouring blocks share what the machine does at the time; the sides get equal parts of it.
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(TRIALS):
        blocks = np.split(steps(noise, rng, 60), 12)
        change = compare_steps(blocks[0::2], blocks[1::2], interleaved=True)
        wrong += change.verdict != "cannot_tell"
    assert wrong <= AT_MOST


@pytest.mark.parametrize("noise", ["quiet", "wide", "spikes", "bimodal", "neighbours_alike"])
def test_one_after_the_other_holds_in_one_continuous_series(noise: str):
    rng = np.random.default_rng(6)
    wrong = 0
    for _ in range(TRIALS):
        blocks = np.split(steps(noise, rng, 80), 8)
        wrong += compare_steps(blocks[:4], blocks[4:]).verdict != "cannot_tell"
    assert wrong <= AT_MOST


@pytest.mark.parametrize(
    ("noise", "shape", "drift", "interleaved"),
    [
        ("quiet", (2, 10), 0.0, False),
        ("quiet", (4, 5), 0.0, False),
        ("heavy_tail", (4, 10), 0.0, False),
        ("spikes", (4, 5), 0.0, False),
        ("quiet", (6, 5), 0.03, True),
        ("spikes", (6, 5), 0.03, True),
        ("neighbours_alike", (10, 5), 0.03, True),
    ],
)
def test_a_tenth_is_found_in_most_trials_when_the_noise_is_small(
    noise: str, shape: tuple[int, int], drift: float, interleaved: bool
):
    blocks, length = shape
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(200):
        a, b = (_side(noise, rng, blocks, length, drift) for _ in range(2))
        faster = [0.9 * block for block in b]
        found += compare_steps(a, faster, interleaved=interleaved).verdict == "faster"
    assert found >= 0.8 * 200


@pytest.mark.parametrize("effect", [0.8, 1.0, 1.25])
def test_the_interval_covers_the_true_ratio(effect: float):
    rng = np.random.default_rng(8)
    covered = 0
    for _ in range(TRIALS):
        a, b = (_side("wide", rng, 5, 5, 0.05) for _ in range(2))
        change = compare_steps(a, [effect * block for block in b], interleaved=True)
        covered += change.low <= effect <= change.high
    assert covered >= 0.93 * TRIALS


def test_four_and_four_blocks_need_complete_separation():
    # 70 orders of 4 and 4 are alike: only the two extreme ones are within 5 %.
    assert interval_rank(4, 4) == 1
    assert interval_rank(3, 4) == 0


@pytest.mark.parametrize("sizes", [(5, 5), (6, 9), (10, 10)])
def test_the_rank_interval_ends_where_the_exact_test_turns(sizes: tuple[int, int]):
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal(size) for size in sizes)
    _, low, high = shift_interval(a, b)
    for shift, inside in ((low, high - 1e-9), (high, low + 1e-9)):
        beyond = shift - 1e-9 if shift == low else shift + 1e-9
        assert mannwhitneyu(a + beyond, b, method="exact").pvalue <= 0.05
        assert mannwhitneyu(a + inside, b, method="exact").pvalue > 0.05


def test_many_blocks_use_the_normal_approximation_without_a_jump():
    # 20 and 20 are exact, 20 and 21 are not: the place in the differences must not jump.
    assert 0 <= interval_rank(20, 21) - interval_rank(20, 20) <= 12


def _side(
    noise: str, rng: np.random.Generator, blocks: int, length: int, drift: float
) -> list[NDArray[np.float64]]:
    """Blocks of one noise, each off by a drift of its own."""
    return [
        steps(noise, rng, length) * np.exp(drift * rng.standard_normal()) for _ in range(blocks)
    ]
