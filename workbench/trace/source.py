"""Bytes of a trace from wherever they are: plain, compressed, or in an archive.

Nothing is ever held whole: ``Source.read_into`` fills the caller's buffer. What the compression
hides (a cut, a damaged block) is told by ``Source.damage`` after the last byte.
"""

import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from isal import isal_zlib
from isal.igzip_lib import IsalError

from workbench.errors import TraceError
from workbench.trace.packed import Archived, Decompressed, compression_of, is_tar
from workbench.trace.pipes import open_pipe
from workbench.units import name_text

try:
    from lzma import LZMAError
except ImportError:  # Python can be built without it
    LZMAError = OSError  # type: ignore[assignment, misc]

SIZE_LIMIT = 16 * 2**30
"""Bytes of text that ``read`` takes by default; the largest trace known to us has 4 GB."""

GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
EMPTY_ZIP_MAGIC = b"PK\x05\x06"
_GZIP_WINDOW = 31
_PIECE = 1 << 16
_OUTPUT = 1 << 18
_SLICE = 256
_DAMAGED: tuple[type[Exception], ...] = (zlib.error, IsalError)  # type: ignore[assignment]
_UNREADABLE = (OSError, EOFError)
_BROKEN_ZIP = (
    *(*_UNREADABLE, zipfile.BadZipFile, zlib.error, LZMAError, struct.error),
    *(RuntimeError, ValueError, LookupError, OverflowError),
)
"""What ``zipfile`` raises: it trusts the offsets, sizes and names that an archive tells."""


class _Raw(Protocol):
    """What a file object must be able to do."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""


class Source:
    """A stream of uncompressed bytes with a name and a limit."""

    def __init__(self, name: str, size_limit: int) -> None:
        self.name = name
        self.size_limit = size_limit
        self.damage: str | None = None
        """Why the bytes ended too early, or ``None`` when they did not."""
        self.size: int | None = None
        """Bytes of the file as it lies there, where that is known."""
        self.taken = 0
        """Bytes of it that were read."""
        self._raw: Any = None
        self._owned: list[Any] = []
        self._given = 0
        self._head = b""
        self._inflated: Any = None
        self._errors: tuple[type[Exception], ...] = _UNREADABLE

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *_: object) -> None:
        for handle in reversed(self._owned):
            handle.close()

    def read_into(self, view: memoryview) -> int:
        """Fill the view as far as one read goes; 0 at the end."""
        if not len(view):
            return 0
        count = self._fill(view)
        self._given += count
        if self._given > self.size_limit:
            raise TraceError(
                f"{self.name}: stopped after {self.size_limit:,} bytes of text, the limit against "
                "absurd sizes and decompression bombs. If the trace really is that large, pass a "
                "larger size_limit; else record fewer steps."
            )
        return count

    def _fill(self, view: memoryview) -> int:
        if self._head:
            count = min(len(view), len(self._head))
            view[:count] = self._head[:count]
            self._head = self._head[count:]
            return count
        try:
            if self._inflated is not None:
                return self._inflated.read_into(view)  # type: ignore[no-any-return]
            if hasattr(self._raw, "readinto"):
                count = self._raw.readinto(view) or 0
                self.taken += count
                return count
            data = self._raw.read(len(view))
        except self._errors as error:
            self.damage = f"the file cannot be read further ({error})"
            return 0
        view[: len(data)] = data
        return len(data)

    def unpack(self, head: bytes) -> bytes:
        """Undo compression that the first bytes show; returns the first bytes of text."""
        for _ in range(4):
            if head.startswith(GZIP_MAGIC):
                self._inflated = _Gzip(self, self._inflated or _Stream(self._raw), head)
            elif head.startswith(ZIP_MAGIC):
                self._open_zip(head)
            elif is_tar(head):
                more = self._inflated or _Stream(self._raw)
                self._inflated = Archived(self.name, head, more)
            elif make := compression_of(head):
                more = self._inflated or _Stream(self._raw)
                self._inflated = Decompressed(make, head, more, self._note_damage)
            else:
                break
            head = self._first_bytes()
        self._head = head
        return head

    def _note_damage(self, reason: str) -> None:
        self.damage = self.damage or reason

    def _first_bytes(self) -> bytes:
        buffer = bytearray(_PIECE)
        view, have = memoryview(buffer), 0
        while have < _PIECE and (count := self._fill(view[have:])):
            have += count
        return bytes(buffer[:have])

    def _open_zip(self, head: bytes) -> None:
        file = self._raw
        if self._inflated is not None or not _seekable(file):
            reader = self._inflated or _Stream(file)
            file = io.BytesIO(head + reader.read_rest(self.size_limit))
        else:
            file.seek(0)
        try:
            archive = zipfile.ZipFile(file)
            entry = _only_trace(self.name, archive)
            self._raw = archive.open(entry)
        except _BROKEN_ZIP as error:
            raise TraceError(
                f"{self.name} is a zip archive that cannot be opened ({error}). Unpack it with "
                "another program, and open the trace inside."
            ) from None
        self._owned += [archive, self._raw]
        self._inflated, self._errors = None, _BROKEN_ZIP


def open_source(source: str | Path | bytes | BinaryIO, size_limit: int) -> tuple[Source, bytes]:
    """Open anything that may hold a trace; returns it with its first bytes of text.

    Raises:
        TraceError: It cannot be opened.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        opened = Source("trace given as bytes", size_limit)
        opened._raw = io.BytesIO(source)
    elif isinstance(source, (str, Path)):
        opened = Source(name_text(Path(source)) or str(source), size_limit)
        opened._raw = _open_path(Path(source))
        opened._owned.append(opened._raw)
    elif hasattr(source, "read"):
        name = getattr(source, "name", None)
        opened = Source(name_text(Path(name)) if isinstance(name, str) else "trace", size_limit)
        opened._raw = source
        if not isinstance(source.read(0), bytes):
            raise TraceError(f"{opened.name} is open as text; open it with mode 'rb'.")
    else:
        raise TraceError(
            f"A trace is read from a path, bytes or a binary file, not {type(source).__name__}."
        )
    try:
        head = opened.unpack(opened._first_bytes())
        opened.size = _size_of(source)
    except BaseException:
        opened.__exit__()
        raise
    return opened, head


def _open_path(path: Path) -> BinaryIO:
    try:
        if path.is_dir():
            raise TraceError(
                f"{path} is a folder. Open one trace file inside it; for a folder with one file "
                "per rank use workbench.trace.find_ranks."
            )
        if path.is_fifo():
            return open_pipe(path)
        return path.open("rb", buffering=0)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        shown = str(path) if len(str(path)) < 200 else str(path)[:60] + "…"
        raise TraceError(f"Cannot open {shown}: {reason}.") from None


def _size_of(source: Any) -> int | None:
    if isinstance(source, (str, Path)):
        return Path(source).stat().st_size
    return len(source) if isinstance(source, (bytes, bytearray)) else None


def _only_trace(name: str, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    entries = [
        entry
        for entry in archive.infolist()
        if not entry.is_dir() and not entry.filename.startswith("__MACOSX/")
    ]
    likely = [e for e in entries if e.filename.lower().endswith((".json", ".json.gz", ".pfw"))]
    chosen = likely or entries
    if len(chosen) == 1:
        return chosen[0]
    shown = ", ".join(entry.filename for entry in chosen[:8]) or "nothing"
    raise TraceError(
        f"{name} is a zip archive with {len(chosen)} candidates for a trace ({shown}). Unpack it "
        "and open one file, or the folder when there is one file per rank."
    )


def _seekable(file: Any) -> bool:
    try:
        return bool(file.seekable())
    except (AttributeError, ValueError):
        return False


class _Stream:
    """A raw file, read in pieces."""

    def __init__(self, raw: _Raw) -> None:
        self._raw = raw

    def read(self, size: int) -> bytes:
        return self._raw.read(size) or b""

    def read_rest(self, limit: int) -> bytes:
        return self._raw.read(limit) or b""


class _Gzip:
    """The members of a gzip stream, one after the other."""

    def __init__(self, source: Source, stream: Any, head: bytes) -> None:
        self._source = source
        self._stream = stream
        self._waiting = head
        self._consumed = 0
        self._output = b""
        self._member = isal_zlib.decompressobj(_GZIP_WINDOW)
        self._begun = False
        self._ended = False

    def read_into(self, view: memoryview) -> int:
        while not self._output and not self._ended:
            self._output = self._next()
        count = min(len(view), len(self._output))
        view[:count] = self._output[:count]
        self._output = self._output[count:]
        return count

    def read(self, size: int) -> bytes:
        buffer = bytearray(size)
        return bytes(buffer[: self.read_into(memoryview(buffer))])

    def read_rest(self, limit: int) -> bytes:
        pieces = bytearray()
        while len(pieces) <= limit and (piece := self.read(_OUTPUT)):
            pieces += piece
        return bytes(pieces)

    def _next(self) -> bytes:
        if self._member.eof:
            rest = self._member.unused_data or self._waiting or self._stream.read(_PIECE)
            rest = rest.lstrip(b"\0") or self._stream.read(_PIECE)
            if not rest.startswith(GZIP_MAGIC):
                self._ended = True
                return b""
            self._member, self._waiting = isal_zlib.decompressobj(_GZIP_WINDOW), rest
            self._begun = False
        data = self._waiting or self._stream.read(_PIECE)
        self._source.taken += 0 if self._waiting else len(data)
        self._waiting = b""
        try:
            output = self._member.decompress(data, _OUTPUT)
        except _DAMAGED as error:
            self._end(f"the compressed data are damaged ({error})")
            return b"" if self._begun else _before_damage(data)
        self._begun = True
        self._waiting = self._member.unconsumed_tail
        if not data and not output and not self._member.eof:
            self._end("the compressed data stop in the middle")
        return output

    def _end(self, reason: str) -> None:
        self._ended = True
        self._source.damage = reason


def _before_damage(data: bytes) -> bytes:
    """What the first piece of a damaged member holds before the damage."""
    member, output = zlib.decompressobj(_GZIP_WINDOW), bytearray()
    for start in range(0, len(data), _SLICE):
        try:
            output += member.decompress(data[start : start + _SLICE], _SLICE * 1100)
        except zlib.error:
            break
    return bytes(output)
