"""Which step a moment belongs to."""

import time

import pytest

from workbench.recording import step_starts
from workbench.recording.step_starts import StepStarts


def test_a_moment_belongs_to_the_step_that_began_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps 0, 1 and 2 begin at 10, 20 and 30 s."""
    steps = StepStarts()
    for moment in (10.0, 20.0, 30.0):
        monkeypatch.setattr(time, "time", lambda moment=moment: moment)
        steps.mark()
    found = [steps.step_at(at) for at in (9.9, 10.0, 19.9, 20.0, 35.0)]
    assert found == [None, 0, 0, 1, 2]
    assert steps.step_at(None) is None
    assert StepStarts().step_at(15.0) is None


def test_steps_beyond_the_last_one_that_is_kept_are_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(step_starts, "MOST", 2)
    steps = StepStarts()
    for moment in (10.0, 20.0, 30.0):
        monkeypatch.setattr(time, "time", lambda moment=moment: moment)
        steps.mark()
    assert [steps.step_at(at) for at in (15.0, 35.0)] == [0, None]
