"""A step of the user's own loop, as whoever looks on at a capture is told of it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SeenStep:
    """One completed step of a captured loop."""

    number: int
    """Steps that the loop has completed."""
    ended_ns: int
    """``time.monotonic_ns()`` when it was complete."""
    took_ns: int | None
    """Since the capture let go of the step before it; ``None`` for the first, whose beginning
    nobody marked."""
    waited_ns: int
    """Of it, the wait for input."""
    profiled: bool
    """Whether it ran under the profiler, which makes it longer than it is."""
