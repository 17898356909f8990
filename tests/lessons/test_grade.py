"""What a check cell accepts, and what it does not."""

from types import SimpleNamespace
from typing import Any

import pytest

from workbench.clinic import CASES, grade
from workbench.errors import LessonError


def run(*found: tuple[str, str, float | None]) -> Any:
    """A Run with these findings: code, verdict, share."""
    return SimpleNamespace(
        findings=[SimpleNamespace(code=c, verdict=v, share_of_window=s) for c, v, s in found]
    )


SICK = run(("WB101", "yes", 0.6), ("WB902", "yes", None))


@pytest.mark.parametrize("after", [run(), run(("WB101", "yes", 0.3)), run(("WB101", "no", 0.6))])
def test_a_finding_is_gone_or_has_lost_half_of_its_share(after: Any) -> None:
    assert "WB101" in repr(grade.gone(SICK, after, "WB101"))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (SICK, SICK, "still there: 60%"),
        (SICK, run(("WB101", "yes", 0.31)), "still there: 31%"),
        (run(), run(), "not among the findings of the first Run"),
    ],
)
def test_a_finding_that_is_left_or_never_was_is_no_cure(before: Any, after: Any, told: str) -> None:
    with pytest.raises(LessonError, match=told):
        grade.gone(before, after, "WB101")


def test_a_finding_without_a_share_must_be_gone() -> None:
    sick = run(("WB501", "yes", None))
    assert grade.gone(sick, run(), "WB501")
    with pytest.raises(LessonError):
        grade.gone(sick, sick, "WB501")


def test_a_key_takes_the_right_answer_however_it_is_typed_and_no_other() -> None:
    right = [letter for letter in "abcdef" if _right("01", letter)]
    assert len(right) == 1
    assert grade.key("01", f" {right[0].upper()} ")
    for wrong in ("z", "", ..., None, 4):
        with pytest.raises(LessonError):
            grade.key("01", wrong)
    with pytest.raises(LessonError, match="no question"):
        grade.key("99", "a")


def _right(question: str, answer: str) -> bool:
    try:
        return bool(grade.key(question, answer))
    except LessonError:
        return False


def test_every_key_has_exactly_one_answer() -> None:
    for question in grade._KEYS:
        choices = [*"abcdef", *(case.name for case in CASES)]
        assert sum(_right(question, choice) for choice in choices) == 1, question


@pytest.mark.parametrize(("answer", "passes"), [(75, True), (125, True), (74, False), (126, False)])
def test_a_number_may_be_a_quarter_off(answer: float, passes: bool) -> None:
    if passes:
        assert grade.near(answer, 100)
    else:
        with pytest.raises(LessonError, match="too far"):
            grade.near(answer, 100)


def test_what_is_no_number_is_not_answered() -> None:
    for answer in (..., None, "5", True):
        with pytest.raises(LessonError, match="nothing is answered"):
            grade.near(answer, 5)


def test_fewer_means_so_many_times_fewer() -> None:
    assert grade.fewer("reads", 20, 10)
    for before, after in ((20, 11), (0, 0)):
        with pytest.raises(LessonError, match="reads"):
            grade.fewer("reads", before, after)


def test_a_passed_check_says_so_in_text_and_in_html() -> None:
    passed = grade.Passed("a < b")
    assert repr(passed) == "✓ a < b"
    assert "a &lt; b" in passed._repr_html_()


def test_a_gate_has_to_fail_first_and_then_to_pass() -> None:
    assert grade.gated("fail", "pass")
    for before, after in (("fail", "fail"), ("fail", "cannot_tell"), ("pass", "pass")):
        with pytest.raises(LessonError, match="gate"):
            grade.gated(before, after)
