"""What is selected on a timeline, as a plain value."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A stretch of time, and the event that fills it where one was clicked.

    Times are microseconds from the first event of the trace (of several ranks, of the first one).
    """

    start_us: float
    end_us: float
    name: str | None = None
    """Of the event; ``None``: a stretch was selected."""
    lane: str | None = None
    rank: int | None = None
    """Number of the rank whose event it is, where there are several."""

    @property
    def duration_us(self) -> float:
        """Length in microseconds."""
        return self.end_us - self.start_us
