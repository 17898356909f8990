"""Compressed streams of every kind that the standard library and isal know, read in pieces.

A reader takes what is already read of the file and a way to get more, and never holds more than a
piece of it. A decompressor that finds damage keeps what it had made since its last answer: that is
made again, a byte at a time, so that nothing before the damage is lost.
"""

import bz2
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from isal import isal_zlib
from isal.igzip_lib import IsalError

GZIP_MAGIC = b"\x1f\x8b"
PIECE = 1 << 16
_OUTPUT = 1 << 18
_GZIP_WINDOW = 31
_MOST_LZMA_MEMORY = 1 << 29
_TRIED = 1 << 12


class Reader(Protocol):
    """What gives bytes, some at a time."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""


class Text:
    """What gives the bytes of a text, in the ways in which they are asked for."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        raise NotImplementedError

    def read_into(self, view: memoryview) -> int:
        """Fill the view as far as one read goes; 0 at the end."""
        found = self.read(len(view))
        view[: len(found)] = found
        return len(found)

    def read_rest(self, limit: int) -> bytes:
        """Everything that is left, but not more than about the limit."""
        pieces = bytearray()
        while len(pieces) <= limit and (piece := self.read(_OUTPUT)):
            pieces += piece
        return bytes(pieces)


class Damage:
    """What was found wrong with the bytes of a file."""

    def __init__(self) -> None:
        self.stopped: str | None = None
        """Why the bytes ended too early, or ``None`` when they did not."""
        self.checksum = False
        """Whether all bytes are there, and some of them are not the right ones."""
        self.mended: str | None = None
        """What of the packing was damaged without costing anything."""

    def stop(self, reason: str) -> None:
        """The bytes end here, too early; the first reason counts."""
        self.stopped = self.stopped or reason


class Packing(NamedTuple):
    """How a stream is packed."""

    make: Callable[[], Any]
    """Gives a decompressor for one part of it."""
    begins: Callable[[bytes], bool]
    """Whether some bytes begin another part."""


class Inflate:
    """A decompressor of zlib or isal with the manners of those of bz2 and lzma."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._tail = b""

    @property
    def needs_input(self) -> bool:
        """Whether everything that was given is used."""
        return not self._tail

    @property
    def eof(self) -> bool:
        """Whether the part has ended."""
        return bool(self._inner.eof)

    @property
    def unused_data(self) -> bytes:
        """What was given and lies behind the end."""
        return self._inner.unused_data or self._tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Some of the text; what is not used yet is kept for the next call."""
        found: bytes = self._inner.decompress(self._tail + data if self._tail else data, max_length)
        self._tail = self._inner.unconsumed_tail
        return found


def _gzip() -> Inflate:
    return Inflate(isal_zlib.decompressobj(_GZIP_WINDOW))


def _zlib() -> Inflate:
    return Inflate(zlib.decompressobj())


def _lzma() -> Any:
    return lzma.LZMADecompressor(memlimit=_MOST_LZMA_MEMORY)


_KINDS: tuple[tuple[tuple[bytes, ...], Callable[[], Any]], ...] = (
    ((GZIP_MAGIC,), _gzip),
    ((b"BZh",), bz2.BZ2Decompressor),
    ((b"\xfd7zXZ\0", b"\x5d\x00\x00"), _lzma),
    ((b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"), _zlib),
)
_CERTAIN = re.compile(rb"\x1f\x8b|BZh[1-9]1AY&SY|\xfd7zXZ\x00", re.S)
"""Magic numbers that no text begins with."""
_WRONG_SUM = re.compile(r"data check|length check|checksum", re.I)
DAMAGED: tuple[type[Exception], ...] = (  # type: ignore[assignment]
    *(OSError, EOFError, ValueError, zlib.error, lzma.LZMAError),
    IsalError,
)


def packing_of(head: bytes) -> Packing | None:
    """How a stream is packed that begins so; ``None`` when it is not, or in an unknown way."""
    for magics, make in _KINDS:
        if head.startswith(magics):
            if not (_CERTAIN.match(head) or _makes_text(make, head[:_TRIED])):
                return None
            return Packing(make, lambda rest: packing_of(rest) is not None)
    return None


def _makes_text(make: Callable[[], Any], head: bytes) -> bool:
    """Whether some bytes are packed so; of damaged ones, whether JSON stands before the damage."""
    try:
        make().decompress(head, _TRIED)
    except DAMAGED:
        pass
    else:
        return True
    part, made = make(), b""
    try:
        for place in range(len(head)):
            made += part.decompress(head[place : place + 1], _TRIED)
    except DAMAGED:
        pass
    return made.lstrip()[:1] in (b"{", b"[")


class Decompressed(Text):
    """A compressed stream, also of several parts one after the other, as plain bytes."""

    def __init__(
        self,
        packing: Packing,
        head: bytes,
        more: Reader,
        damage: Damage,
        again: Callable[[int], Reader] | None = None,
    ) -> None:
        """``again`` reads the compressed bytes once more, from some position on, if it can."""
        self._packing = packing
        self._waiting = head
        self._more = more
        self._damage = damage
        self._again = again
        self._part = packing.make()
        self._part_start = 0
        self._before = 0
        """Bytes that this part was given before the piece that it works on."""
        self._piece = b""
        self._given = 0
        """Bytes of text of this part."""
        self._rescued = b""
        self._ended = False

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; none at the end."""
        while size > 0 and not self._rescued and not self._ended:
            if self._part.eof:
                self._next_part()
                continue
            data = b""
            if self._part.needs_input:
                data = self._waiting or self._more.read(PIECE)
                self._before, self._piece, self._waiting = self._used(), data, b""
            try:
                found = bytes(self._part.decompress(data, min(size, _OUTPUT)))
            except DAMAGED as error:
                self._rescue(error)
                continue
            self._given += len(found)
            if found:
                return found
            if not self._piece and not self._part.eof:
                self._ended = True
                self._damage.stop("the compressed data stop in the middle")
        found, self._rescued = self._rescued[:size], self._rescued[size:]
        return found

    def _used(self) -> int:
        return self._before + len(self._piece)

    def _next_part(self) -> None:
        rest = self._part.unused_data
        start = self._part_start + self._used() - len(rest)
        rest = rest or self._waiting or self._more.read(PIECE)
        padding = len(rest) - len(rest.lstrip(b"\0"))
        rest = rest[padding:] or self._more.read(PIECE)
        if not self._packing.begins(rest):
            self._ended = True
            return
        self._part, self._waiting = self._packing.make(), rest
        self._part_start, self._before, self._piece, self._given = start + padding, 0, b"", 0

    def _rescue(self, error: Exception) -> None:
        """Make again what stands between the last bytes that were given and the damage."""
        found, count, used = bytearray(), 0, self._before
        for text, so_far in self._once_more():
            found += text[max(0, self._given - count) :]
            count, used = count + len(text), so_far
        self._rescued = bytes(found)
        if count and _WRONG_SUM.search(str(error)):
            self._damage.checksum = True
            self._part = _Ended(self._piece[used - self._before + 1 :])
            return
        self._ended = True
        at = f"{self._part_start + used:,}"
        self._damage.stop(f"the compressed data are damaged at their byte {at} ({error})")

    def _once_more(self) -> Iterator[tuple[bytes, int]]:
        """The text of this part up to the damage, each time with the bytes used for it."""
        part, used = self._packing.make(), 0
        if self._before and self._again is None:
            return
        try:
            if self._before and self._again is not None:
                before = self._again(self._part_start)
                while used < self._before and (
                    piece := before.read(min(self._before - used, PIECE))
                ):
                    used += len(piece)
                    yield from ((text, used) for text in _drained(part, piece))
            for place in range(len(self._piece)):
                text = b"".join(_drained(part, self._piece[place : place + 1]))
                yield text, used + place + 1
        except DAMAGED:
            return


class _Ended:
    """A part whose end was reached, though its checksum is wrong."""

    eof = True
    needs_input = True

    def __init__(self, unused_data: bytes) -> None:
        self.unused_data = unused_data


def _drained(part: Any, data: bytes) -> Iterator[bytes]:
    """Everything that a decompressor makes of some bytes."""
    while True:
        yield part.decompress(data, _OUTPUT)
        data = b""
        if part.needs_input or part.eof:
            return
