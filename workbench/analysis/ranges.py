"""A stretch of time that an analysis looks at."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Range:
    """``[start, end)`` in nanoseconds from the trace's first event.

    A range of a device is told by that device's own clock, as its events are; ``shifted`` by the
    device's clock offset gives the same stretch on the host's clock.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError(
                f"a range must not end ({self.end} ns) before it starts ({self.start})"
            )

    @property
    def length(self) -> int:
        """Length in nanoseconds."""
        return self.end - self.start

    def shifted(self, ns: int) -> "Range":
        """The same range on a clock that shows ``ns`` more."""
        return Range(start=self.start + ns, end=self.end + ns)
