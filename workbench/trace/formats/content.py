"""A file of another format: its name, its first bytes, and the ways to read the rest of it."""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import TraceError
from workbench.trace.source import Source

MEMORY_LIMIT = 2 * 2**30
"""Most bytes of a compressed or streamed file whose format needs it whole."""

MAPPED_FROM = 1 << 26
"""Larger files are mapped; smaller ones are read, so that cutting one meanwhile does no harm."""

_PIECE = 1 << 20

Bytes = bytes | mmap.mmap
"""Something with a length whose items are bytes."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """What a reader of a format is given."""

    source: Source
    """Uncompressed bytes, from the first one on."""
    head: bytes
    path: Path | None
    """The file itself, where its bytes stand uncompressed on disk."""

    @property
    def name(self) -> str:
        """File name without its folder."""
        return self.source.name

    def pieces(self) -> Iterator[bytes]:
        """All bytes, a mebibyte at a time."""
        buffer = bytearray(_PIECE)
        while count := self.source.read_into(memoryview(buffer)):
            yield bytes(buffer[:count])

    def whole(self, *, limit: int | None = None) -> Bytes:
        """All bytes at once: mapped where they are many and stand on disk, else in memory.

        Args:
            limit: Most bytes that a format can take that is decoded at once.

        Raises:
            TraceError: They are too many.
        """
        most = self.source.size_limit if limit is None else min(limit, self.source.size_limit)
        if self.path is not None and self.path.stat().st_size >= MAPPED_FROM:
            try:
                with self.path.open("rb") as file:
                    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:
                raise TraceError(f"Cannot read {self.name}: {error}.") from None
            if len(mapped) > most:
                raise TraceError(self._too_large(most))
            return mapped
        most = min(most, MEMORY_LIMIT)
        found = bytearray()
        for piece in self.pieces():
            found += piece
            if len(found) > most:
                raise TraceError(self._too_large(most))
        return bytes(found)

    def _too_large(self, limit: int) -> str:
        return (
            f"{self.name} has more than {limit:,} bytes, too many for its format. Unpack it if it "
            "is compressed, or record fewer steps."
        )


def content_of(source: Source, head: bytes, given: object) -> Content:
    """What ``workbench.trace.read`` was given, as the readers of formats want it."""
    return Content(source=source, head=head, path=_plain_file(given, head))


def _plain_file(given: object, head: bytes) -> Path | None:
    if not isinstance(given, (str, Path)) or not head:
        return None
    path = Path(given)
    try:
        with path.open("rb") as file:
            plain = path.is_file() and file.read(len(head)) == head
    except OSError:
        return None
    return path if plain else None
