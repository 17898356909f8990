"""Samples a second: of steps as they now are, whatever happened between them."""

import numpy as np
import pytest

from tests.widgets.standin import MS, Planted
from workbench.session.session import rate


def planted(*rows: tuple[int, float, int, bool]) -> dict[str, np.ndarray]:
    """Steps of 8 samples as (moment in ms, length in ms, change in force, profiled)."""
    known = Planted()
    for step, (at, took, change, profiled) in enumerate(rows):
        known.plant(
            step=step,
            at_ns=at * MS,
            step_ns=took * MS,
            samples=8,
            change=change,
            profiled=profiled,
        )
    return known.last(50)


def test_a_pause_or_a_comparison_between_two_steps_is_not_counted():
    # Two steps of 10 ms with a minute between them: 16 samples in 20 ms.
    assert rate(planted((10, 10, 0, False), (60_020, 10, 0, False))) == pytest.approx(800)


def test_profiled_steps_and_those_of_other_settings_are_not_counted():
    rows = ((10, 10, 0, False), (14, 4, 1, False), (54, 40, 1, True), (58, 4, 1, False))

    assert rate(planted(*rows)) == pytest.approx(2000)  # 8 samples in 4 ms
    assert rate(planted((40, 40, 0, True))) is None
    assert rate(planted()) is None
