"""Decodes lists of JSON objects so that an odd entry costs itself and not the list."""

from typing import Any, TypeVar

import msgspec
from msgspec import Raw

Entry = TypeVar("Entry")


def entries(raw: Raw, kind: type[Entry]) -> tuple[list[Entry], int]:
    """The entries of a list, and how many are no such entries; anything but a list holds none."""
    try:
        return msgspec.json.decode(raw, type=list[kind], strict=False), 0  # type: ignore[valid-type]
    except (msgspec.DecodeError, RecursionError):
        pass
    found, odd = [], 0
    for one in pieces(raw):
        try:
            found.append(msgspec.json.decode(one, type=kind, strict=False))
        except (msgspec.DecodeError, RecursionError):
            odd += 1
    return found, odd


def pieces(raw: Raw) -> list[Any]:
    """The entries of a list, not decoded."""
    try:
        return msgspec.json.decode(raw, type=list[Raw])
    except (msgspec.DecodeError, RecursionError):
        return []


def entry(raw: Raw, kind: type[Entry]) -> Entry:
    """One object; anything else has the defaults."""
    try:
        return msgspec.json.decode(raw, type=kind, strict=False)
    except (msgspec.DecodeError, RecursionError):
        return kind()
