"""Bytes of a trace from wherever they are: plain, compressed, or in an archive.

Nothing is ever held whole: ``Source.read_into`` fills the caller's buffer. What the compression
hides (a cut, a damaged block) is told by ``Source.damage`` after the last byte.
"""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from workbench.errors import TraceError
from workbench.trace.archived import Archived, is_tar
from workbench.trace.packed import PIECE, Damage, Decompressed, Reader, Text, packing_of
from workbench.trace.pipes import open_pipe
from workbench.trace.zipped import ZIP_MAGIC, open_zip
from workbench.units import name_text

SIZE_LIMIT = 16 * 2**30
"""Bytes of text that ``read`` takes by default; the largest trace known to us has 4 GB."""

_UNREADABLE = (OSError, EOFError)
_PACKED_AT_MOST = 4
"""Times that a file may be packed into another."""


class Source:
    """A stream of uncompressed bytes with a name and a limit."""

    def __init__(self, name: str, size_limit: int) -> None:
        self.name = name
        self.size_limit = size_limit
        self.damage = Damage()
        self.size: int | None = None
        """Bytes of the file as it lies there, where that is known."""
        self.taken = 0
        """Bytes of it that were read."""
        self._raw: Any = None
        self._owned: list[Any] = []
        self.given = 0
        """Bytes of text so far."""
        self._head = b""
        self._inflated: Any = None
        self._start = 0
        """Where in a file that was given open the trace begins."""

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
        self.given += count
        if self.given > self.size_limit:
            raise TraceError(
                f"{self.name}: stopped after {self.size_limit:,} bytes of text, the limit against "
                "absurd sizes and decompression bombs. If the trace really is that large, pass a "
                "larger size_limit; else record fewer steps."
            )
        return count

    def skip_to_last(self, count: int) -> None:
        """Pass over all but the last bytes, where the file can be read at any place."""
        if self._inflated is None and not self._head and _seekable(self._raw):
            here = self._raw.tell()
            self._raw.seek(max(here, self._raw.seek(0, io.SEEK_END) - count))

    @property
    def packed(self) -> bool:
        """Whether every byte has to be unpacked to get to a later one."""
        return self._inflated is not None

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
        except _UNREADABLE as error:
            self.damage.stop(f"the file cannot be read further ({error})")
            return 0
        view[: len(data)] = data
        return len(data)

    def unpack(self, head: bytes) -> bytes:
        """Undo compression that the first bytes show; returns the first bytes of text."""
        for _ in range(_PACKED_AT_MOST):
            more = self._inflated or _Stream(self)
            if head.startswith(ZIP_MAGIC):
                self.taken = 0  # an archive is not read from its beginning to its end
                self._inflated = open_zip(self.name, self._whole(head, more), self.damage)
            elif is_tar(head):
                self._inflated = Archived(self.name, head, more, self.damage)
            elif packing := packing_of(head):
                again = None if self._inflated else self._again()
                self._inflated = Decompressed(packing, head, more, self.damage, again)
            else:
                break
            head = self._first_bytes()
        self._head = head
        return head

    def _whole(self, head: bytes, more: Any) -> Any:
        """All bytes as a file that can be read at any place."""
        if self._inflated is None and not self._start and _seekable(self._raw):
            return self._raw
        return io.BytesIO(head + more.read_rest(self.size_limit))

    def _again(self) -> Callable[[int], Reader] | None:
        """Reads the file's bytes once more, from a position on."""
        if not _seekable(self._raw):
            return None

        def again(position: int) -> Reader:
            self._raw.seek(self._start + position)
            return self._raw  # type: ignore[no-any-return]

        return again

    def _first_bytes(self) -> bytes:
        buffer = bytearray(PIECE)
        view, have = memoryview(buffer), 0
        while have < PIECE and (count := self._fill(view[have:])):
            have += count
        return bytes(buffer[:have])


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
        opened._start = source.tell() if _seekable(source) else 0
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


def _seekable(file: Any) -> bool:
    try:
        return bool(file.seekable())
    except (AttributeError, ValueError):
        return False


class _Stream(Text):
    """A raw file, read in pieces that count as taken."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def read(self, size: int) -> bytes:
        found: bytes = self._source._raw.read(size) or b""
        self._source.taken += len(found)
        return found
