"""The one trace of a zip archive, also of one that was cut.

The table of contents stands at the end of the archive. Where it is missing or wrong, the names and
sizes count that stand before each member.
"""

import bz2
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from isal import isal_zlib

from workbench.errors import TraceError
from workbench.trace.filetypes import CHROME_ENDINGS, TRACE_ENDINGS
from workbench.trace.packed import Damage, Decompressed, Inflate, Packing, Reader, Text

_LOCAL = struct.Struct("<4sHHHHHIIIHH")
ZIP_MAGIC = b"PK\x03\x04"
_ENCRYPTED, _SIZES_BEHIND = 1, 8
_UNKNOWN = 0xFFFFFFFF
_LARGEST_LZMA_WINDOW = 1 << 29
_BROKEN = (
    *(OSError, EOFError, zipfile.BadZipFile, struct.error),
    *(RuntimeError, ValueError, LookupError, OverflowError),
)
"""What ``zipfile`` raises: it trusts the offsets, sizes and names that an archive tells."""


class _Member(NamedTuple):
    """One file of an archive."""

    name: str
    at: int
    """Position of the header before it."""
    method: int
    encrypted: bool
    size: int | None
    """Bytes in the archive; ``None`` when that is not known before they are read."""
    checksum: int | None


def open_zip(name: str, file: BinaryIO, damage: Damage) -> Reader:
    """Open the one trace of a zip archive.

    Raises:
        TraceError: There is no such one, or it cannot be unpacked.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            chosen = _only_trace(name, [_told(entry) for entry in archive.infolist()])
        start = _start_of_data(file, chosen.at)
        reason = "" if start else "its table of contents does not fit"
    except _BROKEN as error:
        start, reason = None, str(error)
    if start is None:
        members = list(_walked(file))
        if not members:
            raise _broken(name, reason)
        chosen = _only_trace(name, members)
        start = _start_of_data(file, chosen.at)
        damage.mended = f"the table of contents of the zip archive ({reason})"
    if start is None or chosen.encrypted:
        raise _broken(name, f"{chosen.name} is encrypted")
    if chosen.method not in _METHODS:
        raise _broken(name, f"{chosen.name} is packed by method {chosen.method}")
    return Unzipped(file, start, chosen, damage)


class Unzipped(Text):
    """A member of a zip archive as a stream; its checksum is compared at its end."""

    def __init__(self, file: BinaryIO, start: int, member: _Member, damage: Damage) -> None:
        self._damage = damage
        self._expected = member.checksum
        self._checksum = 0
        make = _METHODS[member.method]
        packing = Packing(lambda: make(member.size), lambda rest: False)

        def again(position: int) -> Reader:
            left = None if member.size is None else member.size - position
            return _Part(file, start + position, left)

        self._inner = Decompressed(packing, b"", again(0), damage, again)

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; none at the end."""
        found = self._inner.read(size)
        if found:
            self._checksum = zlib.crc32(found, self._checksum)
        elif size and self._expected not in (None, self._checksum) and not self._damage.stopped:
            self._damage.checksum = True
        return found


class _Part:
    """Some bytes of a file."""

    def __init__(self, file: BinaryIO, start: int, left: int | None) -> None:
        self._file = file
        self._left = left
        file.seek(start)

    def read(self, size: int) -> bytes:
        if self._left is not None:
            size = min(size, self._left)
        found = (self._file.read(size) or b"") if size > 0 else b""
        if self._left is not None:
            self._left -= len(found)
        return found


class _Stored:
    """The decompressor of what is not compressed."""

    unused_data = b""

    def __init__(self, size: int | None) -> None:
        self._left = size
        self._tail = b""

    @property
    def eof(self) -> bool:
        return self._left == 0

    @property
    def needs_input(self) -> bool:
        return not self._tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        data = self._tail + data
        found, self._tail = data[:max_length], data[max_length:]
        if self._left is not None:
            self._left -= len(found)
        return found


class _Lzma:
    """LZMA as zip archives hold it: its properties stand before the stream."""

    def __init__(self) -> None:
        self._head = b""
        self._inner: Any = None

    @property
    def eof(self) -> bool:
        return self._inner is not None and self._inner.eof

    @property
    def needs_input(self) -> bool:
        return self._inner is None or self._inner.needs_input

    @property
    def unused_data(self) -> bytes:
        return b"" if self._inner is None else self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        if self._inner is None:
            self._head += data
            end = 4 + int.from_bytes(self._head[2:4], "little")
            if len(self._head) < max(4, end):
                return b""
            self._inner = lzma.LZMADecompressor(
                lzma.FORMAT_RAW, filters=[_filter(self._head[4:end])]
            )
            data = self._head[end:]
        found: bytes = self._inner.decompress(data, max_length)
        return found


def _filter(properties: bytes) -> dict[str, int]:
    """See section 5.8.8 of the zip format's APPNOTE, and the LZMA specification."""
    if len(properties) < 5:
        raise ValueError("its LZMA properties are cut")
    rest, context = divmod(properties[0], 9)
    position, literal = divmod(rest, 5)
    window = int.from_bytes(properties[1:5], "little")
    if window > _LARGEST_LZMA_WINDOW:
        raise ValueError(f"its LZMA window has {window:,} bytes")
    bits = {"lc": context, "lp": literal, "pb": position}
    return {"id": lzma.FILTER_LZMA1, "dict_size": window, **bits}


_METHODS: dict[int, Callable[[int | None], Any]] = {
    zipfile.ZIP_STORED: _Stored,
    zipfile.ZIP_DEFLATED: lambda size: Inflate(isal_zlib.decompressobj(-15)),
    zipfile.ZIP_BZIP2: lambda size: bz2.BZ2Decompressor(),
    zipfile.ZIP_LZMA: lambda size: _Lzma(),
}


def _told(entry: zipfile.ZipInfo) -> _Member:
    return _Member(
        name=entry.filename,
        at=entry.header_offset,
        method=entry.compress_type,
        encrypted=bool(entry.flag_bits & _ENCRYPTED),
        size=entry.compress_size,
        checksum=entry.CRC,
    )


def _walked(file: BinaryIO) -> Iterator[_Member]:
    """The members from the beginning on, as far as each tells where the next one is."""
    at = 0
    while True:
        file.seek(at)
        head = file.read(_LOCAL.size)
        if len(head) < _LOCAL.size or not head.startswith(ZIP_MAGIC):
            return
        _, _, flags, method, _, _, checksum, size, _, name, extra = _LOCAL.unpack(head)
        told = not flags & _SIZES_BEHIND and size != _UNKNOWN
        yield _Member(
            name=file.read(name).decode("utf-8", "replace"),
            at=at,
            method=method,
            encrypted=bool(flags & _ENCRYPTED),
            size=size if told else None,
            checksum=checksum if told else None,
        )
        if not told:
            return
        at += _LOCAL.size + name + extra + size


def _start_of_data(file: BinaryIO, at: int) -> int | None:
    """Where a member's data begin; ``None`` where no member begins."""
    if at < 0:
        return None
    file.seek(at)
    head = file.read(_LOCAL.size)
    if len(head) < _LOCAL.size or not head.startswith(ZIP_MAGIC):
        return None
    *_, name, extra = _LOCAL.unpack(head)
    return at + _LOCAL.size + int(name) + int(extra)


def _only_trace(name: str, members: list[_Member]) -> _Member:
    found = [m for m in members if not m.name.endswith("/") and not m.name.startswith("__MACOSX/")]
    chosen = found
    for endings in (CHROME_ENDINGS, TRACE_ENDINGS):
        if likely := [member for member in found if member.name.lower().endswith(endings)]:
            chosen = likely
            break
    if len(chosen) == 1:
        return chosen[0]
    shown = ", ".join(member.name for member in chosen[:8]) or "nothing"
    raise TraceError(
        f"{name} is a zip archive with {len(chosen)} candidates for a trace ({shown}). Unpack it "
        "and open one file, or the folder when there is one file per rank."
    )


def _broken(name: str, reason: str) -> TraceError:
    return TraceError(
        f"{name} is a zip archive that cannot be opened ({reason}). Unpack it with another "
        "program, and open the trace inside."
    )
