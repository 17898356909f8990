"""Where the events stand in the text, and what stands between two of them.

Kineto indents by two, other writers by four, compact ones not at all, some put one event on a line
and forget the commas. What separates two events is learned from the file itself.
"""

import re
from dataclasses import dataclass
from itertools import islice

import msgspec

from workbench.trace.schema import UNTYPED

_BLANK = rb"[ \t\r\n]*+"
"""Takes all and gives nothing back: else a megabyte of blanks is tried in every way."""

_FIRST_KEY = rb'"(?:ph|name|cat|pid|tid|ts|dur|id|args|s|bp|tts|func|cname|tdur)"' + _BLANK + rb":"
BETWEEN = re.compile(rb"\}" + _BLANK + rb"(,?)" + _BLANK + rb"(?=\{" + _BLANK + _FIRST_KEY + rb")")
"""The end of an event and what follows it up to the next one; the comma may be missing."""

EVENT_START = re.compile(rb"\{" + _BLANK + _FIRST_KEY)
CONTINUES = re.compile(rb"[\]} \t\r\n]*+," + _BLANK + rb"\{" + _BLANK + _FIRST_KEY)
"""Another event behind closing brackets, which then close nothing: a document has ended there, or
has another key."""


def _spelled(key: str) -> bytes:
    """A key in every way that JSON allows to write it."""
    letters = (rb"(?:%c|\\u00(?i:%02x))" % (ord(letter), ord(letter)) for letter in key)
    return rb'(?<!\\)"' + b"".join(letters) + rb'"' + _BLANK + rb":"


TRACE_EVENTS = re.compile(_spelled("traceEvents") + _BLANK)
_PHASE = re.compile(_spelled("ph"))
_LEARN_FROM = 1 << 16
_SEARCH_BACK = 1 << 14
_MOST_TRIED = 64


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What separates two events: the exact bytes, and where in them the comma is."""

    separator: bytes
    comma: int

    def cut(self, buffer: bytearray, end: int) -> int | None:
        """Position of the last comma between two events before ``end``."""
        found = buffer.rfind(self.separator, 1, end)
        if found > 0:
            return found + self.comma
        matches = _search_back(buffer, end)
        return matches[-1] if matches else None


def learn(text: bytes) -> Layout | None:
    """The layout of a piece of text that starts with an event.

    The most frequent separator is taken, with the white space before the closing brace, so that it
    does not match inside an event. ``None`` when there are no two events, or no commas between.
    """
    piece = bytes(text[:_LEARN_FROM] if BETWEEN.search(text, 0, _LEARN_FROM) else text)
    counts: dict[tuple[bytes, int], int] = {}
    for match in BETWEEN.finditer(piece):
        if not match.group(1):
            continue
        start = match.start()
        while start and piece[start - 1] in b" \t\r\n":
            start -= 1
        key = piece[start : match.end() + 1], match.start(1) - start
        counts[key] = counts.get(key, 0) + 1
    if not counts:
        return None
    separator, comma = max(counts, key=lambda key: counts[key])
    return Layout(separator=separator, comma=comma)


def _search_back(buffer: bytearray, end: int) -> list[int]:
    start = max(1, end - _SEARCH_BACK)
    while True:
        commas = [m.start(1) for m in BETWEEN.finditer(buffer, start, end) if m.group(1)]
        if commas or start == 1:
            return commas
        start = max(1, end - 4 * (end - start))


def looks_like_events(text: bytes) -> bool:
    """True when a text that starts with ``{`` starts with an event, not with a header."""
    first_end = BETWEEN.search(text)
    first = text[: first_end.end() if first_end else _LEARN_FROM]
    return _has_key(_PHASE, first) and not _has_key(TRACE_EVENTS, first)


def _has_key(key: re.Pattern[bytes], text: bytes) -> bool:
    matches = islice(key.finditer(text), _MOST_TRIED)
    return any(is_top_level(text[: match.start()]) for match in matches)


def is_top_level(before: bytes) -> bool:
    """True when a text that starts with ``{`` is an object that is still open, at depth one."""
    try:
        UNTYPED.decode(before + b'"":0}')
    except (msgspec.DecodeError, RecursionError):
        depth = before.count(b"{") - before.count(b"}") + before.count(b"[") - before.count(b"]")
        return depth <= 1
    return True
