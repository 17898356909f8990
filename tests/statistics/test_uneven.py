"""What a typical step says is not the pace where some steps take much longer."""

import numpy as np
import pytest

from workbench.statistics.change import LEAST_EFFECT, compare_steps

STEPS = 20


def blocks(seed: int, count: int, times: np.ndarray) -> list[np.ndarray]:
    """Blocks of the same pattern with 2 % of noise."""
    chance = np.random.default_rng(seed)
    return [times * np.exp(chance.normal(0, 0.02, times.size)) for _ in range(count)]


EVEN = np.full(STEPS, 1e7)
SLOW_FIFTH = np.where(np.arange(STEPS) % 5 == 0, 2.0, 1.0)


def compared(b: np.ndarray):
    return compare_steps(blocks(1, 4, EVEN), blocks(2, 4, b), again=blocks(3, 4, EVEN),
                         interleaved=True)  # fmt: skip


def test_a_faster_typical_step_is_no_gain_where_all_steps_together_take_longer():
    # Four steps of 0.9 and one of 1.8: 1.08 of the time, though the median step takes 0.9.
    found = compared(0.9 * EVEN * SLOW_FIFTH)
    assert (found.verdict, found.uneven) == ("cannot_tell", True)
    assert found.ratio == pytest.approx(0.9, rel=0.03)
    assert "1.08 times as long" in (found.reason or "") or "1.09 times" in (found.reason or "")


def test_slow_steps_now_and_then_are_told_though_the_typical_step_is_the_same():
    # Every tenth step takes 20 times as long: (9 + 20) / 10 = 2.9 of the time.
    found = compared(EVEN * np.where(np.arange(STEPS) % 10 == 0, 20.0, 1.0))
    assert (found.verdict, found.uneven) == ("cannot_tell", True)
    assert "2.9" in (found.reason or "")


def test_slow_steps_on_both_sides_are_the_loops_own():
    # Both log at every fifth step; 0.8 of everything is 0.8 of the typical step and of the pace.
    a, b = EVEN * SLOW_FIFTH, 0.8 * EVEN * SLOW_FIFTH
    found = compare_steps(blocks(1, 4, a), blocks(2, 4, b), interleaved=True)
    assert (found.verdict, found.uneven) == ("faster", False)


def test_one_wild_step_decides_nothing():
    b = blocks(2, 4, 0.9 * EVEN)
    b[1][3] *= 100  # its block takes six times as long: one block of four
    found = compare_steps(blocks(1, 4, EVEN), b, again=blocks(3, 4, EVEN), interleaved=True)
    assert (found.verdict, found.uneven) == ("faster", False)


def test_steps_without_any_spread_differ_only_beyond_what_clocks_tell():
    a = [EVEN] * 4
    # One nanosecond of ten milliseconds is a tick; one percent is a change.
    assert compare_steps(a, [EVEN + 1] * 4, again=a, interleaved=True).verdict == "cannot_tell"
    found = compare_steps(a, [EVEN * 1.01] * 4, again=a, interleaved=True)
    assert found.verdict == "slower"
    assert found.low is not None
    assert found.low <= 1.01 / (1 + LEAST_EFFECT) * (1 + 1e-9)
