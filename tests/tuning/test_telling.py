"""What a search says of its end and of noise."""

from typing import Any

import pytest

from workbench.settings import Settings
from workbench.tuning.attempt import Attempt, why_nothing


def attempt(decision: Any) -> Attempt:
    return Attempt(
        change=Settings(workers=2),
        base=Settings(),
        origin="offer",
        outcome="measured",
        decision=decision,
        reason="",
    )


@pytest.mark.parametrize("decisions", [[], ["not tried", "not tried"]])
def test_a_search_that_measured_no_change_does_not_say_that_none_helps(decisions: list[str]):
    assert why_nothing(map(attempt, decisions)) == "nothing was tried"


@pytest.mark.parametrize("decision", ["dropped", "reverted"])
def test_one_trial_is_enough_to_say_that_what_was_tried_does_not_help(decision: str):
    said = why_nothing([attempt("not tried"), attempt(decision)])
    assert said == "nothing that was tried helps"
