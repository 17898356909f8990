"""Time stamps in microseconds become int64 nanoseconds, without losing one.

A double holds microseconds with three decimals exactly enough only below 2**43 (101 days): there
its spacing is 0.98 ns, so the nearest nanosecond is still certain. Unix time in microseconds
(1.7e15) is far above; such stamps are read as text and go through ``from_values``.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

INVALID = np.iinfo(np.int64).min
"""Stands for a stamp that is missing, not a number, or outside 292 years."""

DOUBLE_LIMIT_US = float(2**43)
_RANGE_US = 9.2e15
_THREE_DECIMALS = 3
_LONGEST = 64


class NeedsExactStampsError(Exception):
    """Stamps are too large for doubles: read this piece again, keeping their text."""


def fits_doubles(us: NDArray[np.float64]) -> bool:
    """True when every stamp is small enough that a double tells its nanosecond."""
    if not len(us):
        return True
    low, high = np.fmin.reduce(us), np.fmax.reduce(us)
    return not (high >= DOUBLE_LIMIT_US or low <= -DOUBLE_LIMIT_US)


def from_doubles(us: NDArray[np.float64]) -> NDArray[np.int64]:
    """Nanoseconds of stamps below ``DOUBLE_LIMIT_US``; whole and part are rounded apart.

    Rounding ``us * 1000`` at once is off by one between 2**42 and 2**52 / 1000.
    """
    numbers = ~np.isnan(us)
    if not numbers.all():
        ns = np.full(len(us), INVALID)
        ns[numbers] = from_doubles(us[numbers])
        return ns
    whole = np.floor(us)
    part = us - whole
    part *= 1000
    ns = whole.astype(np.int64)
    ns *= 1000
    ns += np.rint(part, out=part).astype(np.int64)
    return ns


def from_values(values: Sequence[Any]) -> NDArray[np.int64]:
    """Nanoseconds of stamps of any JSON type: whole numbers, or numbers as text."""
    if all(type(value) is int for value in values):
        try:
            us: NDArray[np.int64] = np.array(values, np.int64)
        except OverflowError:
            pass
        else:
            if not len(us) or (us.max() < _RANGE_US and us.min() > -_RANGE_US):
                us *= 1000
                return us
    return np.fromiter(map(from_value, values), np.int64, len(values))


def from_value(value: Any) -> int:
    """Nanoseconds of one stamp, or ``INVALID``."""
    if type(value) is int:
        return value * 1000 if abs(value) < _RANGE_US else INVALID
    if isinstance(value, float):
        value = repr(value)
    if type(value) is not str or len(value) > _LONGEST:
        return INVALID
    whole, _, part = value.partition(".")
    if len(part) == _THREE_DECIMALS and (whole + part).isdecimal() and whole.isascii():
        ns = int(whole + part)
        return ns if ns < _RANGE_US * 1000 else INVALID
    try:
        exact = Decimal(value)
    except InvalidOperation:
        return INVALID
    if not exact.is_finite() or exact.adjusted() > 15 or abs(exact) >= _RANGE_US:
        return INVALID
    return int((exact * 1000).to_integral_value(ROUND_HALF_EVEN))
