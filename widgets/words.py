"""Values of settings as people read them."""

from collections.abc import Mapping
from typing import Any


def word(value: Any) -> str:
    """A value as the page's own controls name it."""
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def settings_words(values: Mapping[str, Any]) -> str:
    """Settings in one line, such as "precision bf16, workers 4"."""
    return ", ".join(f"{name} {word(value)}" for name, value in values.items()) or "as yours"


def differing_words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What changed between two settings, such as "workers 0 → 4"."""
    names = [*before, *(name for name in after if name not in before)]
    told = []
    for name in names:
        a, b = before.get(name), after.get(name)
        if a != b:
            first, second = ("as yours" if v is None else word(v) for v in (a, b))
            told.append(f"{name} {first} → {second}")
    return ", ".join(told) or "nothing"
