"""Finds what a header behind the events says, without reading the events."""

import re
from typing import Any

import msgspec

from workbench.trace.frames import CHUNK, Frames
from workbench.trace.schema import UNTYPED, end_of_first

_KEY = re.compile(rb'(?<!\\)"distributedInfo"[ \t\r\n]*+:')


def distributed_info(frames: Frames) -> dict[str, Any] | None:
    """``distributedInfo`` in the last mebibyte of a trace, if it stands in the outermost object.

    The source is at its end afterwards.
    """
    source, text = frames.source, frames.text()
    source.skip_to_last(CHUNK)
    buffer = bytearray(CHUNK)
    while count := source.read_into(memoryview(buffer)):
        text = (text + buffer[:count])[-CHUNK:]
    for match in reversed(list(_KEY.finditer(text))):
        found = _value(text[match.end() :])
        if found is not None:
            return found
    return None


def _value(text: bytes) -> dict[str, Any] | None:
    """The object that a text begins with, where only the rest of a header follows."""
    try:
        UNTYPED.decode(text)
    except RecursionError:
        return None
    except msgspec.DecodeError as error:
        end = end_of_first(error)
    else:
        return None
    if end is None:
        return None
    try:
        found = UNTYPED.decode(text[:end])
        UNTYPED.decode(b'{"":0' + text[end:])
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
