"""When each step of a loop began, by the clock of the wall that compilers note their work with."""

import time
from array import array
from bisect import bisect_right

MOST = 100_000
"""Of a longer loop the later steps are not told apart."""


class StepStarts:
    """Begin of every step, eight bytes each; steps are counted from 0, as in the trace."""

    def __init__(self) -> None:
        self._starts = array("d")

    def mark(self) -> None:
        """The next step begins."""
        if len(self._starts) < MOST:
            self._starts.append(time.time())

    def step_at(self, moment: float | None) -> int | None:
        """The step in which ``moment`` (seconds since 1970) lies; ``None`` where nobody knows."""
        if moment is None or not self._starts or moment < self._starts[0]:
            return None
        number = bisect_right(self._starts, moment) - 1
        return None if number == MOST - 1 else number
