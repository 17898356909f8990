"""A buffer that walks over the text of a trace and is cut between events.

The buffer keeps one byte free in front, so that a piece between two commas becomes a JSON array by
writing brackets around it in place; nothing is copied before it is parsed.
"""

from workbench.errors import TraceError
from workbench.trace.source import Source

CHUNK = 1 << 20
"""Bytes parsed at once: 5 to 9 % less processor time than half of it, less memory than twice."""
LARGEST = 1 << 28
"""No single event or header is longer than this."""

OPEN, CLOSE = ord("["), ord("]")


class Frames:
    """The part of the text that is in memory: ``buffer[1:end]``."""

    def __init__(self, source: Source, size: int = CHUNK) -> None:
        self.source = source
        self.buffer = bytearray(size + 1)
        self.view = memoryview(self.buffer)
        self.end = 1
        self.ended = False
        """True when the source has no more bytes."""
        self.offset = 0
        """Position of ``buffer[1]`` in the text."""

    def fill(self) -> None:
        """Read until the buffer is full or the text ends."""
        while not self.ended and self.end < len(self.buffer):
            count = self.source.read_into(self.view[self.end :])
            self.end += count
            self.ended = count == 0

    def drop(self, start: int) -> None:
        """Forget everything before ``start``."""
        rest = self.end - start
        self.buffer[1 : 1 + rest] = self.buffer[start : self.end]
        self.offset += start - 1
        self.end = 1 + rest

    def grow(self) -> None:
        """Make room for an event, or a header, that is longer than the buffer."""
        if len(self.buffer) > LARGEST:
            raise TraceError(
                f"{self.source.name}: no event ends within {LARGEST >> 20} MiB after byte "
                f"{self.offset:,}. This is not a trace of events, or one record is absurdly large."
            )
        larger = bytearray(2 * (len(self.buffer) - 1) + 1)
        larger[: self.end] = self.view[: self.end]
        self.buffer, self.view = larger, memoryview(larger)

    def text(self, start: int = 1, end: int | None = None) -> bytes:
        """A copy of some of the text in memory."""
        return bytes(self.view[start : self.end if end is None else min(end, self.end)])

    def rest(self, limit: int) -> bytes:
        """Everything that is left, but not more than the limit; the source is read to its end."""
        kept = bytearray(self.view[1 : min(self.end, 1 + limit)])
        while True:
            self.end = 1
            self.fill()
            if self.end == 1:
                return bytes(kept)
            kept += self.view[1 : min(self.end, 1 + max(0, limit - len(kept)))]
