"""The one trace of a tar archive, read as a stream."""

import io
import tarfile
from typing import Any

from workbench.errors import TraceError
from workbench.trace.filetypes import TRACE_ENDINGS
from workbench.trace.packed import Damage, Reader, Text

_TAR_MARK = slice(257, 262)
_SHOWN = 8


def is_tar(head: bytes) -> bool:
    """Whether a file begins as a tar archive does."""
    return head[_TAR_MARK] == b"ustar"


class Archived(Text):
    """The one trace of a tar archive.

    Its members are walked through once; that there is a second trace shows behind the first.
    """

    def __init__(self, name: str, head: bytes, more: Reader, damage: Damage) -> None:
        self._name = name
        self._damage = damage
        self._file = _Whole(head, more)
        self._tar: Any = None
        self._member: Any = None
        self._ended = False
        self._chosen = ""
        self._start = 0
        """Where in the archive the next byte of the trace stands."""
        try:
            self._tar = tarfile.open(fileobj=self._file, mode="r|")  # noqa: SIM115
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
            self._file.padded = True
            found: bytes = self._member.read(size)
            self._file.padded = False
            there = self._file.given - self._start
            self._start += len(found)
            if len(found) > there:
                self._ended = True
                self._damage.stop("the archive stops in the middle")
                return found[: max(0, there)]
            if not found and size:
                self._ended = True
                self._refuse_second()
        except (tarfile.TarError, EOFError, ValueError) as error:
            raise self._broken(error) from None
        return found

    def _next(self) -> Any:
        while (entry := self._tar.next()) is not None:
            if entry.isfile() and entry.name.lower().endswith(TRACE_ENDINGS):
                self._chosen = self._chosen or entry.name
                self._start = entry.offset_data
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
    """What was read already, and then the rest; zeros behind the end while that is asked for."""

    def __init__(self, head: bytes, more: Reader) -> None:
        self._head = head
        self._more = more
        self.given = 0
        """Bytes of the archive so far."""
        self.padded = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        found = self._head[:size]
        self._head = self._head[len(found) :]
        while len(found) < size and (piece := self._more.read(size - len(found))):
            found += piece
        self.given += len(found)
        return found.ljust(size, b"\0") if self.padded else found
