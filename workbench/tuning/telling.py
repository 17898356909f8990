"""A search in words: the progress bar, and the history that a person can follow."""

from collections.abc import Sequence

from workbench.recording.progress import Progress
from workbench.settings import Settings
from workbench.tuning.attempt import Attempt
from workbench.units import share_text

_MARKS = {"kept": "▲", "reverted": "·", "dropped": "·", "not tried": "–"}


class BestSoFar(Progress):
    """A progress bar that says what is tried and how much better the best so far is."""

    def __init__(self, *, shown: bool, title: str) -> None:
        super().__init__(shown=shown, title=title)
        self.trying = ""
        self.best = ""

    def stage(self, text: str) -> None:
        """Say what goes on, within the trial that it belongs to."""
        super().stage(f"{self.trying or text}{self.best and f' · best so far {self.best}'}")


def kept_text(attempts: Sequence[Attempt]) -> str:
    """By how much all that was kept shortens the loop, as far as each was measured by itself."""
    left = 1.0
    for attempt in attempts:
        if attempt.kept and attempt.ratio is not None:
            left *= attempt.ratio
    return f"−{share_text(1 - left)}" if left < 1 else ""


def told(attempt: Attempt, about: str = "") -> str:
    """One attempt as a line of the history."""
    why = attempt.origin
    if about:
        why = f"{why}: {about.rstrip('.')}"
    line = f"{_MARKS[attempt.decision]} {named(attempt.change)} ({why}): {attempt.reason}."
    if attempt.kept and attempt.compile_s is not None:
        line += f" Compiling took {attempt.compile_s:.1f} s"
        steps = attempt.break_even_steps
        line += "." if steps is None else f", which has paid after {steps} steps."
    if attempt.kept and attempt.change.batch_size is not None:
        line += " This changes the training itself, so check it by training."
    notes = "".join(f" Note: {note}." for note in attempt.notes)
    return f"{line}{notes} {attempt.decision.capitalize()}."


def named(change: Settings) -> str:
    """A change in words; of a batch size as people say it."""
    size = change.batch_size
    return f"batch {size}" if change == Settings(batch_size=size) else str(change)
