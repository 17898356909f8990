"""Writes small XLA profiles by hand: a protobuf writer of a few lines, and the messages with it.

Times are picoseconds from the start of their line, as in the format; a line starts at a nanosecond.
"""

from typing import Any

Stats = dict[str, Any]


def varint(value: int) -> bytes:
    """A number of protobuf; negative ones take ten bytes."""
    value %= 2**64
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def number(field: int, value: int) -> bytes:
    """A field that holds a number."""
    return varint(field << 3) + varint(value)


def chunk(field: int, value: bytes | str) -> bytes:
    """A field that holds bytes, text or a message."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


class Plane:
    """One plane; names of events and statistics get their numbers as they come."""

    def __init__(self, name: str, **stats: Any) -> None:
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}
        self._lines = b""
        self._name = name
        self._told = b"".join(chunk(6, self._stat(key, value)) for key, value in stats.items())

    def line(
        self,
        name: str,
        *events: tuple[str, int, int] | tuple[str, int, int, Stats],
        start_ns: int = 0,
        ident: int = 1,
    ) -> "Plane":
        """A line of events (name, offset, length, and perhaps statistics)."""
        body = number(1, ident) + chunk(2, name) + number(3, start_ns)
        for event in events:
            title, offset, length = event[:3]
            stats: Stats = event[3] if len(event) > 3 else {}
            code = self._events.setdefault(title, len(self._events) + 1)
            told = b"".join(chunk(4, self._stat(key, value)) for key, value in stats.items())
            body += chunk(4, number(1, code) + number(2, offset) + number(3, length) + told)
        self._lines += chunk(3, body)
        return self

    def _stat(self, name: str, value: Any) -> bytes:
        code = self._stats.setdefault(name, len(self._stats) + 1)
        told = chunk(5, value) if isinstance(value, str) else number(4, value)
        return number(1, code) + told

    def encoded(self) -> bytes:
        """The message."""
        tables = b"".join(
            chunk(field, number(1, code) + chunk(2, number(1, code) + chunk(2, name)))
            for field, names in ((4, self._events), (5, self._stats))
            for name, code in names.items()
        )
        return chunk(2, self._name) + self._lines + tables + self._told


def space(*planes: Plane) -> bytes:
    """An XSpace."""
    return b"".join(chunk(1, plane.encoded()) for plane in planes)
