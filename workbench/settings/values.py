"""What a single value of a setting may be: a word, a number, a switch or several names."""

import reprlib
import sys
from collections.abc import Sequence
from typing import Any

from workbench.errors import SettingError

_LARGEST = sys.float_info.max


def short(value: Any) -> str:
    """A value as it would be typed, cut where somebody gave a whole text or list."""
    return reprlib.repr(value)


def word(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in allowed:
        raise SettingError(f"{name}={short(value)} is unknown; use one of {', '.join(allowed)}.")
    return value


def whole(name: str, value: Any, least: int) -> int:
    """A whole number that is not too small."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise SettingError(f"{name}={short(value)} must be a whole number.")
    if value < least:
        raise SettingError(f"{name}={short(value)} must be at least {least}.")
    return value


def above_zero(name: str, value: Any, of: str = "") -> float:
    """A number above 0, ``of`` some unit."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= _LARGEST:
        raise SettingError(f"{name}={short(value)} must be a number{of} above 0.")
    return float(value)


def switch(name: str, value: Any) -> bool:
    """On or off."""
    if not isinstance(value, bool):
        raise SettingError(f"{name}={short(value)} must be True, False or None.")
    return value


def names(name: str, value: Any, what: str) -> tuple[str, ...]:
    """Names, at least one and none twice; ``what`` says of which things."""
    if isinstance(value, str):
        raise SettingError(
            f"{name}={short(value)} must be a tuple of names: write ({short(value)},)."
        )
    if not isinstance(value, tuple | list) or not all(isinstance(v, str) and v for v in value):
        raise SettingError(f"{name}={short(value)} must be a tuple of {what}.")
    return members(name, value)


def members(name: str, value: Sequence[Any]) -> tuple[Any, ...]:
    """Several values, at least one and none twice."""
    if not value:
        raise SettingError(f"{name} is empty: name at least one, or leave it out.")
    if len(set(value)) < len(value):
        raise SettingError(f"{name}={short(value)} names one twice.")
    return tuple(value)
