"""Compression other than gzip and zip, and tar archives: all of them read as streams.

Each reader takes what is already read of the file and a way to get more, and never holds more than
a piece of it.
"""

import bz2
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from workbench.errors import TraceError

_PIECE = 1 << 16
_OUTPUT = 1 << 18
_MOST_LZMA_MEMORY = 1 << 29
_TRIED = 1 << 12
_TAR_MARK = slice(257, 262)
_SHOWN = 8

TRACE_ENDINGS = (".json", ".json.gz", ".pfw", ".pfw.gz", ".xplane.pb", ".sqlite")


class Reader(Protocol):
    """What gives bytes, some at a time."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""


class _Inflate:
    """zlib's decompressor with the manners of those of bz2 and lzma."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj()
        self.unused_data = b""
        self.eof = False

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self.eof, self.unused_data = self._inner.eof, self._inner.unused_data
        return found


def _lzma() -> Any:
    return lzma.LZMADecompressor(memlimit=_MOST_LZMA_MEMORY)


_KINDS: tuple[tuple[tuple[bytes, ...], Callable[[], Any]], ...] = (
    ((b"BZh",), bz2.BZ2Decompressor),
    ((b"\xfd7zXZ\0", b"\x5d\x00\x00"), _lzma),
    ((b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"), _Inflate),
)
_DAMAGED = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)


def compression_of(head: bytes) -> Callable[[], Any] | None:
    """What makes a decompressor for a stream that begins so; ``None`` for one that is unknown."""
    for magics, make in _KINDS:
        if head.startswith(magics):
            try:
                make().decompress(head[:_TRIED], _TRIED)
            except _DAMAGED:
                return None
            return make
    return None


def is_tar(head: bytes) -> bool:
    """Whether a file begins as a tar archive does."""
    return head[_TAR_MARK] == b"ustar"


class Decompressed:
    """A compressed stream, also of several parts one after the other, as plain bytes."""

    def __init__(
        self, make: Callable[[], Any], head: bytes, more: Reader, damaged: Callable[[str], None]
    ) -> None:
        self._make = make
        self._waiting = head
        self._more = more
        self._damaged = damaged
        self._decompressor = make()
        self._ended = False

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; none at the end."""
        while not self._ended:
            if self._decompressor.eof:
                self._next_part()
                continue
            data = self._waiting
            if not data and getattr(self._decompressor, "needs_input", True):
                data = self._more.read(_PIECE)
            self._waiting = b""
            try:
                found = bytes(self._decompressor.decompress(data, min(size, _OUTPUT)))
            except _DAMAGED as error:
                self._end(f"the compressed data are damaged ({error})")
                break
            if found:
                return found
            if not data and not self._decompressor.eof:
                self._end("the compressed data stop in the middle")
        return b""

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

    def _next_part(self) -> None:
        rest = self._decompressor.unused_data or self._more.read(_PIECE)
        if not rest.strip(b"\0") or compression_of(rest) is None:
            self._ended = True
            return
        self._decompressor, self._waiting = self._make(), rest

    def _end(self, why: str) -> None:
        self._ended = True
        self._damaged(why)


class Archived:
    """The one trace of a tar archive.

    Its members are walked through once; that there is a second trace shows behind the first.
    """

    def __init__(self, name: str, head: bytes, more: Reader) -> None:
        self._name = name
        self._tar: Any = None
        self._member: Any = None
        self._ended = False
        self._chosen = ""
        try:
            self._tar = tarfile.open(fileobj=_Whole(head, more), mode="r|")  # noqa: SIM115
            self._others: list[str] = []
            self._member = self._next()
        except (tarfile.TarError, EOFError, ValueError) as error:
            raise self._broken(error) from None
        if self._member is None:
            shown = ", ".join(self._others[:_SHOWN]) or "nothing"
            raise TraceError(
                f"{name} is a tar archive without a trace (it holds: {shown}). Unpack it, and open "
                "the trace if it is among these."
            )

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes of the trace; none at the end."""
        if self._ended:
            return b""
        try:
            found: bytes = self._member.read(size)
            if not found and size:
                self._ended = True
                self._refuse_second()
        except (tarfile.TarError, EOFError, ValueError) as error:
            raise self._broken(error) from None
        return found

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

    def _next(self) -> Any:
        while (entry := self._tar.next()) is not None:
            if entry.isfile() and entry.name.lower().endswith(TRACE_ENDINGS):
                self._chosen = self._chosen or entry.name
                return self._tar.extractfile(entry)
            self._others.append(entry.name)
            self._tar.members.clear()  # else every header stays in memory
        return None

    def _refuse_second(self) -> None:
        if self._next() is not None:
            raise TraceError(
                f"{self._name} is a tar archive with several traces (the first is {self._chosen}). "
                "Unpack it and open one file, or the folder when there is one file per rank."
            )

    def _broken(self, error: Exception) -> TraceError:
        return TraceError(
            f"{self._name} is a tar archive that cannot be read ({error}). Unpack it with another "
            "program, and open the trace inside."
        )


class _Whole(io.RawIOBase):
    """What was read already, and then the rest."""

    def __init__(self, head: bytes, more: Reader) -> None:
        self._head = head
        self._more = more

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        found = self._head[:size]
        self._head = self._head[len(found) :]
        while len(found) < size and (piece := self._more.read(size - len(found))):
            found += piece
        return found
