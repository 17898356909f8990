"""Time stamps in microseconds become int64 nanoseconds, without losing one.

A double holds microseconds with three decimals exactly enough only below 2**43 (101 days): there
its spacing is 0.98 ns, so the nearest nanosecond is still certain. Unix time in microseconds
(1.7e15) is far above; such stamps stay text and go through ``from_values``.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from workbench.trace.columns import packed, texts_of

INVALID = np.iinfo(np.int64).min
"""Stands for a stamp that is missing, not a number, or outside 292 years."""

DOUBLE_LIMIT_US = float(2**43)
_RANGE_US = 9_200_000_000_000_000
_THREE_DECIMALS = 3
_LONGEST = 64
_MOST_DIGITS = 19
_JSON = msgspec.json.Decoder(float_hook=str)


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


def from_lengths(values: Sequence[Any]) -> NDArray[np.int64]:
    """Nanoseconds of durations, which are short enough for doubles unless they are absurd."""
    try:
        us = packed(values, "d")
    except ValueError:
        return from_values(values)
    return from_doubles(us) if fits_doubles(us) else from_values(values)


def from_values(values: Sequence[Any]) -> NDArray[np.int64]:
    """Nanoseconds of stamps: whole numbers, JSON text (``Raw``), or text of numbers."""
    kinds = set(map(type, values))
    if kinds == {Raw}:
        texts = texts_of(values)
        return _from_texts(texts) if texts else np.full(len(values), INVALID)
    if kinds == {int}:
        try:
            us = packed(values, "q")
        except ValueError:
            pass
        else:
            if not len(us) or (us.max() < _RANGE_US and us.min() > -_RANGE_US):
                return us * 1000
    return np.fromiter(map(from_value, values), np.int64, len(values))


def _from_texts(texts: list[bytes]) -> NDArray[np.int64]:
    """All texts of one length at once: there digits stand under digits and points under points."""
    ns = np.full(len(texts), INVALID)
    lengths = packed(list(map(len, texts)), "i")
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        places = np.flatnonzero(lengths == length)
        same = [texts[place] for place in places.tolist()]
        found = _from_columns(np.frombuffer(b"".join(same), np.uint8).reshape(len(same), length))
        if found is None:
            found = np.fromiter(map(from_value, map(_value_of, same)), np.int64, len(same))
        ns[places] = found
    return ns


def _from_columns(characters: NDArray[np.uint8]) -> NDArray[np.int64] | None:
    """Nanoseconds of lines of digits, all without a point or all with three decimals."""
    length = characters.shape[1]
    digits = characters
    with_point = length > 1 + _THREE_DECIMALS and (characters[:, -4] == ord(".")).all()
    if with_point:
        digits = np.delete(characters, length - 4, axis=1)
    count = digits.shape[1]
    if not 0 < count <= _MOST_DIGITS - (0 if with_point else _THREE_DECIMALS):
        return None
    if digits.min() < ord("0") or digits.max() > ord("9"):
        return None
    powers = 10 ** np.arange(count - 1, -1, -1, dtype=np.uint64)
    numbers = (digits - np.uint8(ord("0"))).astype(np.uint64) @ powers
    numbers *= np.uint64(1 if with_point else 1000)
    ns: NDArray[np.int64] = numbers.astype(np.int64)
    ns[numbers >= np.uint64(_RANGE_US * 1000)] = INVALID
    return ns


def _value_of(text: bytes) -> Any:
    try:
        return _JSON.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def from_value(value: Any) -> int:
    """Nanoseconds of one stamp, or ``INVALID``."""
    if type(value) is Raw:
        value = _value_of(bytes(value))
    if type(value) is int:
        return value * 1000 if abs(value) < _RANGE_US else INVALID
    if isinstance(value, float):
        value = repr(value)
    if type(value) is not str or len(value) > _LONGEST:
        return INVALID
    try:
        exact = Decimal(value)
    except InvalidOperation:
        return INVALID
    if not exact.is_finite() or exact.adjusted() > 15 or abs(exact) >= _RANGE_US:
        return INVALID
    return int((exact * 1000).to_integral_value(ROUND_HALF_EVEN))
