"""The plan of a capture: which step of the loop does what."""

import pytest

from workbench.profiling.phases import CapturePlan


@pytest.mark.parametrize(("warmup", "pilot"), [(1, 0), (2, 1), (3, 1), (10, 8)])
def test_the_pilot_is_the_last_warm_up_step_or_the_one_before_it(warmup: int, pilot: int) -> None:
    """From three warm-up steps on, the last one lets the profiler settle."""
    assert CapturePlan(warmup=warmup, steps=5).pilot == pilot


@pytest.mark.parametrize(
    ("length", "fitted"),
    [
        (None, (5, 8)),
        (13, (5, 8)),
        (12, (3, 5)),
        (8, (2, 3)),
        (3, (1, 2)),
        (2, (1, 1)),
        (1, (5, 8)),
    ],
)
def test_a_plan_of_13_steps_fits_the_loop(length: int | None, fitted: tuple[int, int]) -> None:
    """A quarter for warm-up, and half of the rest for the window, once there is a rest to halve.

    One iteration holds no plan at all; it is said when the loop has ended.
    """
    plan = CapturePlan(warmup=5, steps=8).fitted(length)
    assert (plan.warmup, plan.steps) == fitted
