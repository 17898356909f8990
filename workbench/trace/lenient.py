"""Events whose values have odd types become the same structs as the others.

Traces write byte counts as text, streams as names, parents as null, and names as whatever a user
gave. What has an obvious meaning keeps it; what has none is *not recorded*.
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from workbench.trace.schema import (
    EXACT,
    INSTANTS,
    NO_ARGUMENTS,
    NO_MEMORY,
    LabelArguments,
    MemoryArguments,
)

_INT64 = range(-(2**63), 2**63)
_TEXT_LIMIT = 4096


def to_event(value: Any) -> Any | None:
    """The struct of one decoded JSON object; ``None`` for what is no event."""
    if not isinstance(value, Mapping):
        return None
    phase = value.get("ph")
    struct = EXACT.structs.get(phase) if isinstance(phase, str) else None
    if struct is None:
        return None
    fields: dict[str, Any] = {}
    for field in struct.__struct_fields__:
        if field not in value:
            continue
        found = value[field]
        if field in ("name", "cat"):
            fields[field] = to_text(found, limit=None)
        elif field in ("pid", "tid") or (field == "id" and phase != "C"):
            fields[field] = found if type(found) is int else to_text(found)
        elif field == "args":
            fields[field] = _arguments(str(phase), found)
        else:
            fields[field] = found
    if fields.get("dur", 0) is None:
        del fields["dur"]
    return struct(**fields)


def to_text(value: Any, limit: int | None = _TEXT_LIMIT) -> str:
    """Any JSON value as text that can be written as UTF-8, and of at most so many characters."""
    if value is None:
        return ""
    if not isinstance(value, str):
        value = json.dumps(value)
    text: str = value
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text[:limit]


def to_int(value: Any) -> int:
    """A whole number of at most 64 bits, or -1."""
    if isinstance(value, bool) or value is None:
        return -1
    if isinstance(value, str):
        try:
            value = int(value, 0) if len(value) <= 32 else -1
        except ValueError:
            value = to_float(value)
    if isinstance(value, float):
        value = int(value) if value.is_integer() else -1
    return value if isinstance(value, int) and value in _INT64 else -1


def to_float(value: Any) -> float:
    """A number, or NaN."""
    if isinstance(value, bool):
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def to_arguments(kind: Any, found: Any) -> Any:
    """A struct of arguments of any JSON value."""
    fields: dict[str, Any] = {}
    for info in msgspec.structs.fields(kind):
        if not isinstance(found, Mapping) or info.encode_name not in found:
            continue
        value = found[info.encode_name]
        if info.type is Raw:
            fields[info.name] = Raw(json.dumps(value).encode()) if value is not None else Raw(b"")
        elif info.type is float:
            fields[info.name] = to_float(value)
        elif info.type is Any:
            fields[info.name] = value
        else:
            fields[info.name] = to_int(value)
    return kind(**fields)


def _arguments(phase: str, found: Any) -> Any:
    if phase == "C":
        return found if isinstance(found, dict) else {}
    if phase == "M":
        return to_arguments(LabelArguments, found)
    if phase in INSTANTS:
        return to_arguments(MemoryArguments, found) if found else NO_MEMORY
    return Raw(json.dumps(found).encode()) if isinstance(found, Mapping) else NO_ARGUMENTS
