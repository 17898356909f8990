"""Pieces of idle time as they are kept: few bytes each, because there are millions of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.nesting import Rows, Times

Codes = NDArray[np.uint8]
Lengths = NDArray[np.int32] | NDArray[np.int64]
StepNumbers = NDArray[np.signedinteger[Any]]

BLOCK = 1 << 16
"""Pieces that are summed together, so that memory stays bounded."""
GROWTH = 16
"""Times that a column grows beyond its need: seldom, because the old and the new one are then held
at once."""
PER_GAP = ("gap_start", "gap_pieces", "gap_work", "gap_step")
PER_PIECE = ("length", "cause", "host", "operator", "source", "first_use", "unrecorded")


@dataclass(frozen=True, kw_only=True, eq=False)
class IdlePieces:
    """Pieces of idle time on the device's clock, in time order.

    The pieces of a gap follow each other without a break, so a gap's start and the lengths of its
    pieces tell when each begins. What is asked per piece beyond the columns is made when asked for;
    ``blocks`` asks for a few of them at a time.
    """

    gap_start: Times
    """Start of each gap, or of the part of it that lies in the range."""
    gap_pieces: NDArray[np.int32]
    """Number of its pieces, at least one."""
    gap_work: Rows
    """Row of the device event that ended it, or -1."""
    gap_step: StepNumbers
    """Number of the step that launched that work, or -1."""
    length: Lengths
    """Of each piece in nanoseconds; four bytes each, where none lasts longer than they hold."""
    cause: Codes
    """Place in ``CAUSES``."""
    host: Rows
    """Row of the host record that explains the piece, or -1."""
    operator: Rows
    """Row of the innermost operator or user range that the deciding thread was in, or -1."""
    source: Rows
    """Row of the innermost Python stack record, which tells the source line, or -1."""
    first_use: NDArray[np.bool_]
    """Allocation or kernel loading in the first complete step: no part of the steady state."""
    unrecorded: NDArray[np.bool_]
    """The device was busy with work that the trace does not show."""
    launch_of: Rows
    """No column of the pieces: the join that ``launch`` is read from, per event row."""

    def __len__(self) -> int:
        return len(self.length)

    @property
    def start(self) -> Times:
        """Start of each piece."""
        start = np.cumsum(self.length, dtype=np.int64)
        start -= self.length
        start += np.repeat(self.gap_start - start[self._first()], self.gap_pieces)
        return np.asarray(start, np.int64)

    @property
    def end(self) -> Times:
        """End of each piece."""
        end = self.start
        end += self.length
        return end

    @property
    def next_work(self) -> Rows:
        """Row of the device event that ended the gap of each piece, or -1."""
        return np.repeat(self.gap_work, self.gap_pieces)

    @property
    def step(self) -> StepNumbers:
        """Number of the step that launched the next work, or -1."""
        return np.repeat(self.gap_step, self.gap_pieces)

    @property
    def launch(self) -> Rows:
        """Row of the call that launched the next work, or -1."""
        launch = np.full(len(self.gap_work), -1, np.int32)
        known = np.flatnonzero(self.gap_work >= 0)
        launch[known] = self.launch_of[self.gap_work[known]]
        return np.repeat(launch, self.gap_pieces)

    @property
    def gap_length(self) -> Times:
        """Length of each gap inside the range."""
        if not len(self):
            return np.zeros(0, np.int64)
        return np.add.reduceat(self.length, self._first(), dtype=np.int64)

    def time(self, wanted: NDArray[np.bool_]) -> int:
        """Nanoseconds of the wanted pieces."""
        total = 0
        for first in range(0, len(self), BLOCK):
            some = slice(first, first + BLOCK)
            total += int(self.length[some][wanted[some]].sum(dtype=np.int64))
        return total

    def blocks(self, gaps: int = BLOCK >> 2) -> "Iterator[IdlePieces]":
        """The same pieces, those of so many gaps at a time; nothing is copied."""
        until = np.concatenate(([0], np.cumsum(self.gap_pieces)))
        for first in range(0, len(self.gap_start), gaps):
            last = min(first + gaps, len(self.gap_start))
            here, inside = slice(first, last), slice(int(until[first]), int(until[last]))
            yield IdlePieces(
                launch_of=self.launch_of,
                **{name: getattr(self, name)[here] for name in PER_GAP},
                **{name: getattr(self, name)[inside] for name in PER_PIECE},
            )

    def _first(self) -> NDArray[np.intp]:
        """Number of the first piece of each gap."""
        return np.cumsum(self.gap_pieces) - self.gap_pieces

    @staticmethod
    def joined(blocks: "Iterable[IdlePieces]") -> "IdlePieces":
        """The pieces of all blocks, at least one, one after the other; held only once."""
        columns: dict[str, NDArray[Any]] = {}
        names = [column.name for column in fields(IdlePieces) if column.name != "launch_of"]
        size = dict.fromkeys(names, 0)
        for block in blocks:
            for name in names:
                values = getattr(block, name)
                columns[name] = _appended(columns.get(name), size[name], values)
                size[name] += len(values)
            launch_of = block.launch_of
        for name, column in columns.items():
            if column.strides != (0,):
                column.resize(size[name], refcheck=False)
        return IdlePieces(**columns, launch_of=launch_of)


def _appended(column: NDArray[Any] | None, size: int, values: NDArray[Any]) -> NDArray[Any]:
    """A column of so many values with more behind them; one value all the way takes no memory.

    What is not yet written to takes address space, but no memory either.
    """
    until = size + len(values)
    plain = column is None or column.strides == (0,)
    if plain and until:
        value = values[0] if column is None or not size else column[0]
        if (values == value).all():
            return np.broadcast_to(np.asarray(value, values.dtype), until)
    kind = values.dtype if column is None else np.promote_types(values.dtype, column.dtype)
    if column is None or plain or until > len(column) or column.dtype != kind:
        wider = np.empty(GROWTH * until, kind)
        if size and column is not None:
            wider[:size] = column[:size]
        column = wider
    column[size:until] = values
    return column
