"""The cells of a lane file: exact times in any unit, and whole numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

UNITS: Mapping[str, int] = {"": 1000, "_ns": 1, "_us": 1000, "_ms": 10**6, "_s": 10**9}
"""Nanoseconds in the unit that the suffix of a column names."""

_LONGEST = 64
_DIGITS = 20
_LARGEST = 2**62


class LaneError(Exception):
    """A line of a lane file is not as it should be."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """Where a row's start and duration stand, and in which unit."""

    start: int
    start_unit: int
    duration: int
    duration_unit: int

    def read(self, row: Sequence[str]) -> tuple[int, int]:
        """Start and duration in nanoseconds."""
        start = _nanoseconds(row[self.start], self.start_unit, "start")
        duration = _nanoseconds(row[self.duration], self.duration_unit, "duration")
        if duration < 0:
            raise LaneError(f"the duration {cell(row[self.duration])} is negative")
        return start, duration


def times_of(position: Mapping[str, int]) -> Times:
    """The columns of the times.

    Raises:
        LaneError: There is none, or one in two units.
    """
    start, start_unit = _column(position, "start")
    duration, duration_unit = _column(position, "duration")
    return Times(start=start, start_unit=start_unit, duration=duration, duration_unit=duration_unit)


def _column(position: Mapping[str, int], name: str) -> tuple[int, int]:
    found = [(position[name + s], unit) for s, unit in UNITS.items() if name + s in position]
    if len(found) != 1:
        spellings = ", ".join(name + suffix for suffix in UNITS)
        raise LaneError(f"there must be exactly one of the columns {spellings}")
    return found[0]


def _nanoseconds(text: str, unit: int, what: str) -> int:
    text = text.strip()
    try:
        value = Decimal(text) if len(text) <= _LONGEST else Decimal("NaN")
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or value.adjusted() > _DIGITS:
        raise LaneError(f"the {what} {cell(text)} is no time")
    found = int((value * unit).to_integral_value(ROUND_HALF_EVEN))
    if abs(found) >= _LARGEST:
        raise LaneError(f"the {what} {cell(text)} is further away than 146 years")
    return found


def number(text: str, what: str) -> int:
    """A whole number that is not negative; ``-1`` for an empty cell."""
    text = text.strip()
    if not text:
        return -1
    if not (text.isascii() and text.isdecimal() and len(text) < _DIGITS - 1):
        raise LaneError(f"the {what} {cell(text)} is no whole number")
    return int(text)


def cell(text: str) -> str:
    """A cell as it is shown in a message."""
    return repr(text if len(text) <= _LONGEST else text[:_LONGEST] + "…")
