"""The lines of a lane file, counted, a piece of the file at a time."""

import codecs
from collections.abc import Iterator

from workbench.trace.formats.lane_cells import LaneError

LONGEST_LINE = 1 << 20
_DELIMITERS = ",;\t"


class Lines:
    """Lines of text without those that begin with ``#``; ``number`` is that of the last one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.number = 0
        self._pieces = pieces

    def __iter__(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        rest = ""
        for piece in self._pieces:
            *whole, rest = (rest + decoder.decode(piece)).split("\n")
            yield from self._kept(whole)
            if len(rest) > LONGEST_LINE:
                raise LaneError(f"it is longer than {LONGEST_LINE:,} characters")
        rest += decoder.decode(b"", final=True)
        if rest:
            yield from self._kept([rest])

    def _kept(self, lines: list[str]) -> Iterator[str]:
        for line in lines:
            self.number += 1
            if not line.startswith("#"):
                yield line.rstrip("\r") + "\n"


def header_line(head: bytes) -> str:
    """The line that names the columns; empty where there is none."""
    lines = head.decode("utf-8-sig", "replace").split("\n")
    return next((line for line in lines if line.strip() and not line.startswith("#")), "")


def delimiter_of(head: bytes) -> str:
    """What separates the cells: the one of comma, semicolon and tab that the header has most."""
    return max(_DELIMITERS, key=header_line(head).count)
