"""Wall time, processor time and time without a processor, between marks."""

import itertools
import time
from types import TracebackType
from typing import NamedTuple, Self

from workbench.tuning.delays import DelayProbe
from workbench.tuning.trial import LEAST_LEFT


class Piece(NamedTuple):
    """What lies between two marks, in nanoseconds."""

    wall: int
    cpu: int
    """Of all threads of this process."""
    delay: int = 0
    """In which this thread could have run and had no processor."""

    def undisturbed(self, *, on: bool) -> tuple[int, int]:
        """Wall time without the delay, and processor time.

        Args:
            on: Whether the delay is a part of the time; behind a device's work it costs nothing.
        """
        least = max(int(LEAST_LEFT * self.wall), 1)
        return max(self.wall - self.delay if on else self.wall, least), self.cpu


class Stopwatch:
    """Reads three clocks at each mark.

    On a busy machine work that computes would look as if it waited: what other programs take of the
    processors is left out, as in the blocks of trials.
    """

    def __init__(self) -> None:
        self._probe = DelayProbe(on=True)
        self._marks: list[tuple[int, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._probe.__exit__(kind, error, trace)

    def mark(self) -> None:
        """The end of one piece and the beginning of the next."""
        self._probe.step()
        self._marks.append((time.monotonic_ns(), time.process_time_ns()))

    def pieces(self) -> list[Piece]:
        """Between each two marks; delays are 0 where the system does not tell them."""
        pairs = list(itertools.pairwise(self._marks))
        delays = self._probe.delays_ns()
        if delays is None or len(delays) != len(pairs):
            delays = (0,) * len(pairs)
        return [
            Piece(b[0] - a[0], b[1] - a[1], delay)
            for (a, b), delay in zip(pairs, delays, strict=True)
        ]
