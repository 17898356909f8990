"""How many steps fit into the time and into a trace."""

import pytest

from workbench.errors import TimeLimitError
from workbench.recording.plan import limit_window, plan_steps

MS = 1e6


def test_everything_fits_into_a_short_loop() -> None:
    plan = plan_steps(steps=20, step_ns=10 * MS, bytes_per_step=300_000, lead=1, left_s=600)
    assert (plan.block, plan.window, plan.notes) == (20, 20, ())


def test_a_window_is_never_longer_than_twenty_steps() -> None:
    plan = plan_steps(steps=500, step_ns=10 * MS, bytes_per_step=1000, lead=1, left_s=None)
    assert (plan.block, plan.window) == (500, 20)


def test_a_large_trace_cuts_the_window_and_says_so() -> None:
    """At 45 MB a step, 4 steps stay below 200 MB and 5 do not."""
    window, (note,) = limit_window(10, 45_000_000)
    assert window == 4
    assert "from 10 steps to 4" in note
    assert "45.0 MB" in note


def test_one_step_is_always_profiled() -> None:
    assert limit_window(10, 10**9)[0] == 1


def test_long_steps_shrink_the_plan_to_the_time_that_is_left() -> None:
    """80 % of 100 s are 80 steps of 1 s, less 3 leading ones; 40 + 2.5 x 20 = 90 do not fit."""
    plan = plan_steps(steps=20, step_ns=1e9, bytes_per_step=1000, lead=1, left_s=100)
    assert (plan.block, plan.window) == (17, 17)
    assert "time_limit_s" in plan.notes[0]


def test_a_plan_that_measures_nothing_is_refused_with_numbers() -> None:
    with pytest.raises(TimeLimitError, match=r"one step takes 60\.0 s: only 5 more fit"):
        plan_steps(steps=20, step_ns=60e9, bytes_per_step=1000, lead=1, left_s=600)
