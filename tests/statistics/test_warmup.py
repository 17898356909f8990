"""How many first steps does the change test leave out?"""

import numpy as np
import pytest

from tests.statistics.machines import steps
from workbench.statistics.warmup import has_settled, warmup_length

MS = 1_000_000


def test_one_slow_first_step_is_left_out():
    # The first step compiles or allocates: 900 ms against 100.
    assert warmup_length([900 * MS] + [100 * MS, 101 * MS, 99 * MS, 100 * MS] * 4) == 1


def test_a_slow_start_of_several_steps_is_left_out_as_a_whole():
    assert warmup_length([500, 180, 150, 100, 101, 99, 100, 102, 98, 100, 101, 99]) == 3


def test_fast_first_steps_are_not_the_steady_state_either():
    # A prefetch queue that was full at the start: the loader cannot keep that pace.
    assert warmup_length([40, 41, 40, 100, 101, 99, 100, 102, 98, 100, 101, 99]) == 3


def test_equal_steps_have_no_warmup():
    assert warmup_length([100] * 20) == 0


def test_a_slow_step_in_the_middle_is_not_warmup():
    assert warmup_length([100, 101, 99, 100, 300, 100, 102, 98, 100, 101, 99, 100]) == 0


def test_a_slow_first_step_like_many_later_ones_is_noise():
    # Every third step is slow: the first is one of them.
    assert warmup_length([140, 100, 101] * 8) == 0


@pytest.mark.parametrize("times", [[], [900], [900, 100], [900, 100, 100]])
def test_fewer_than_four_steps_say_nothing(times: list[float]):
    assert warmup_length(times) == 0


def test_at_most_half_is_left_out_when_the_steps_never_settle():
    assert warmup_length(np.geomspace(1000, 10, 20)) <= 10


@pytest.mark.parametrize(
    ("times", "settled"),
    [
        ([900, 100, 101, 99, 100], True),
        ([900, 500, 300, 200, 150], False),  # five steps, each still faster than the one before
        ([900, 850, 100, 101, 99], False),  # two of five: one more steady step will tell
        ([900, 850, 100, 101, 99, 100], True),
        ([100, 100, 100], False),
    ],
)
def test_a_series_has_settled_when_its_later_half_is_steady(times: list[float], settled: bool):
    assert has_settled(times) is settled


@pytest.mark.parametrize(
    ("noise", "at_most"),
    [
        ("quiet", 0.04),
        ("wide", 0.04),
        ("bimodal", 0.06),
        # A first step that happens to be wild is left out: it is, in one of ten series, an outlier
        # by construction, and leaving it out harms no median.
        ("heavy_tail", 0.08),
        ("spikes", 0.12),
        # A slow spell at the very start of a short series is like a warm-up in every way.
        ("neighbours_alike", 0.18),
    ],
)
@pytest.mark.parametrize("count", [12, 20, 40])
def test_stationary_noise_is_seldom_taken_for_warmup(noise: str, at_most: float, count: int):
    rng = np.random.default_rng(11)
    found = [warmup_length(steps(noise, rng, count) * MS) > 0 for _ in range(400)]
    assert np.mean(found) <= at_most


@pytest.mark.parametrize("noise", ["quiet", "spikes", "bimodal", "regimes"])
def test_a_compiling_first_step_is_found_in_any_noise(noise: str):
    rng = np.random.default_rng(12)
    found = []
    for _ in range(200):
        times = steps(noise, rng, 20)
        times[0] *= 20
        found.append(warmup_length(times * MS))
    assert np.mean(np.array(found) >= 1) >= 0.95


def test_a_shift_of_a_seventh_is_found_to_the_step_on_a_quiet_machine():
    rng = np.random.default_rng(13)
    found = []
    for _ in range(200):
        times = steps("quiet", rng, 20)
        times[:5] *= 1.15
        found.append(warmup_length(times * MS))
    assert np.mean(np.array(found) == 5) >= 0.9
