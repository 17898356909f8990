"""Checks at the end of a lesson: by what was measured, or by a key that the page does not show.

Each gives a line that says what was right, or raises
:class:`~workbench.errors.LessonError` with a hint. None of them looks at how the answer is written.
"""

import hashlib
import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import LessonError

if TYPE_CHECKING:
    from workbench.run.run import Run

_KEYS = {
    "01": "5f76d31566",
    "02": "b943070ea3",
    "03": "cb5a752dce",
    "04": "dd6d0691ec",
    "05": "478694f12a",
    "06": "1812c25d38",
    "07": "d1d1d8102e",
    "08": "dfae3afe26",
    "09": "539ff73f94",
    "10": "79f67c6a94",
    "patient-1": "265dbbc686",
    "patient-2": "7f2c25eb28",
    "patient-3": "a455ac7f4d",
    "patient-4": "3167f8481e",
    "patient-5": "eead6f03a4",
    "patient-6": "d89319924d",
}
"""The first digits of the SHA-256 of ``lesson:answer``."""
LEFT_SHARE = 0.5
"""A fault counts as cured when at most this part of its share of the step is left."""


@dataclass(frozen=True)
class Passed:
    """A check that was passed."""

    text: str

    def __repr__(self) -> str:
        return f"✓ {self.text}"

    def _repr_html_(self) -> str:
        return f"<p><strong>✓ {html.escape(self.text)}</strong></p>"


def key(question: str, answer: object) -> Passed:
    """Whether this is the answer to a question with several choices.

    Args:
        question: The number of the lesson, such as ``"01"``, or the name of a patient.
        answer: The letter that was chosen, or the name that was found.

    Raises:
        LessonError: Nothing was answered, or something else is right.
    """
    if question not in _KEYS:
        known = ", ".join(_KEYS)
        raise LessonError(f"there is no question {question!r}; there are: {known}.")
    if not isinstance(answer, str) or not answer.strip():
        raise LessonError("nothing is answered yet: replace the ... by your choice, as a text.")
    if digest(question, answer) != _KEYS[question]:
        raise LessonError(
            f"{answer!r} is not what the measurement says: look at the figure and the findings "
            "again, then choose another one."
        )
    return Passed(f"{answer.strip()} is right.")


def digest(question: str, answer: str) -> str:
    """What is kept of an answer."""
    text = f"{question}:{answer.strip().lower()}"
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def gone(before: "Run", after: "Run", code: str) -> Passed:
    """Whether a finding of the first Run is gone from the second, or has lost most of its share.

    Args:
        before: The Run of the sick loop.
        after: The Run of the cured one.
        code: The finding, such as ``"WB101"``.

    Raises:
        LessonError: The first Run does not have it, or the second one still does.
    """
    was, left = share(before, code), share(after, code)
    if was is None:
        raise LessonError(
            f"{code} is not among the findings of the first Run: run its cell again on a machine "
            "that does nothing else (WB902 says when it is too busy)."
        )
    if left is None:
        return Passed(f"{code} was found before, and is gone.")
    if was and left <= LEFT_SHARE * was:
        return Passed(f"{code} took {was:.0%} of a step, and {left:.0%} now.")
    raise LessonError(
        f"{code} is still there: {left:.0%} of a step, after {was:.0%} before. Its advice says "
        "what to change."
    )


def share(run: "Run", code: str) -> float | None:
    """The largest share of a step that this finding tells of; ``None`` where it is not found."""
    found = [f for f in run.findings if f.code == code and f.verdict == "yes"]
    return max((f.share_of_window or 0.0 for f in found), default=None)


def near(answer: object, measured: float, *, within: float = 0.25) -> Passed:
    """Whether a number that was read off agrees with the one that was measured.

    Args:
        answer: The number.
        measured: What it is held against.
        within: How far apart they may be, as a share of the measured one.

    Raises:
        LessonError: It is no number, or too far off.
    """
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        raise LessonError("nothing is answered yet: replace the ... by a number.")
    if abs(answer - measured) > within * abs(measured):
        raise LessonError(
            f"{answer:g} is too far from what was measured: within {within:.0%} is asked for. "
            "Mind the unit, and what it is a part of."
        )
    return Passed(f"{answer:g}, and {measured:.3g} was measured.")


def fewer(what: str, before: float, after: float, *, times: float = 2.0) -> Passed:
    """Whether a number fell to a part of what it was.

    Args:
        what: What was counted, as a plural.
        before: How many of it there were.
        after: How many there are.
        times: How many times fewer are asked for.

    Raises:
        LessonError: There are still too many.
    """
    if before <= 0:
        raise LessonError(f"{what} before: {before:g}. Run the first measurement again.")
    if after * times > before:
        raise LessonError(
            f"{what}: {before:g} before and {after:g} now. "
            f"At most {before / times:g} are asked for."
        )
    return Passed(f"{what}: {before:g} before, {after:g} now.")


def gated(before: str, after: str) -> Passed:
    """Whether a gate failed for the sick side, and passes for the cured one.

    Args:
        before: The verdict over the sick side: pass, fail or cannot_tell.
        after: The verdict over the cured side.

    Raises:
        LessonError: The first one did not fail, or the second one does not pass.
    """
    if before != "fail":
        raise LessonError(f"the gate over the first side says {before}: run its cell again.")
    if after != "pass":
        raise LessonError(f"the gate says {after}: its table names the metric that became worse.")
    return Passed("the gate failed before, and passes.")
