"""What is known of idle time whose cause is unknown: where it lies, and why nobody can tell."""

from typing import NamedTuple

from workbench.analysis.causes import CAUSE_CODE
from workbench.analysis.idle import Idle


class UnknownTime(NamedTuple):
    """Nanoseconds of idle time without a cause; the parts sum to it exactly."""

    after: int
    """Behind the last recorded work of the device, where a recording ends later."""
    unrecorded: int
    """The device did what the trace does not hold: launched work, or a blocking call, waited."""
    unlaunched: int
    """Before work whose launch was not recorded."""

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self)


def unknown_time(idle: Idle) -> UnknownTime:
    """Divide the unknown part of a device's idle time."""
    pieces = idle.pieces
    unknown = pieces.cause == CAUSE_CODE["unknown"]
    after = unknown & (pieces.next_work < 0)
    unrecorded = unknown & pieces.unrecorded & ~after
    return UnknownTime(
        after=pieces.time(after),
        unrecorded=pieces.time(unrecorded),
        unlaunched=pieces.time(unknown & ~after & ~unrecorded),
    )
