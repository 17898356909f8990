"""Columns that grow while a file streams by, and the codes that stand for repeated text."""

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from workbench.trace.lenient import to_int, to_text

_FIRST = 4096
_GROWTH = 1.4


class Codes:
    """Numbers for keys, in the order of their first appearance.

    ``table`` is a plain dictionary, because looking up in a subclass takes twice as long: look up
    first, and ``learn`` the keys when one is missing.
    """

    def __init__(self) -> None:
        self.table: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.table)

    def __getitem__(self, key: Any) -> int:
        return self.table.setdefault(key, len(self.table))

    def learn(self, keys: Iterable[Any]) -> None:
        """Give every key that is new the next number."""
        for key in dict.fromkeys(keys):
            if key not in self.table:
                self[key]


class RawCodes:
    """Codes of JSON values by their text; layouts that differ only in white space are one."""

    def __init__(self) -> None:
        self._table: dict[bytes, int] = {b"": -1, b"null": -1}
        self._canonical = Codes()

    def of(self, raws: Sequence[Raw]) -> NDArray[np.int32] | None:
        """The codes of some values, or ``None`` when none is there."""
        texts = texts_of(raws)
        if not texts:
            return None
        table = self._table
        try:
            codes = [table[text] for text in texts]
        except KeyError:
            for text in dict.fromkeys(texts):
                if text not in table:
                    self._learn(text)
            codes = [table[text] for text in texts]
        found = packed(codes, "i")
        return found if found.max(initial=-1) >= 0 else None

    def _learn(self, raw: bytes) -> None:
        text = raw.decode("utf-8", "replace")
        try:
            text = json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
        except (ValueError, RecursionError):
            text = " ".join(text.split())
        self._table[raw] = self._canonical[text.encode("utf-8", "replace").decode()]

    def texts(self) -> tuple[str, ...]:
        """The values in the order of their codes, as compact JSON."""
        return tuple(self._canonical)


class Lanes:
    """Codes of lanes as ``table[tid][pid]``; a number and its text are the same lane."""

    def __init__(self) -> None:
        self.table: dict[Any, dict[Any, int]] = {}
        self._canonical = Codes()

    def learn(self, places: Iterable[tuple[Any, Any]]) -> None:
        """Give every (tid, pid) that is new the next number."""
        for tid, pid in dict.fromkeys(places):
            code = self._canonical[(to_text(pid), to_text(tid))]
            self.table.setdefault(tid, {})[pid] = code

    def keys_in_order(self) -> tuple[tuple[str, str], ...]:
        """(pid, tid) as text in the order of their codes."""
        return tuple(self._canonical)


class Column:
    """One growing array. Values may be put at rows; rows never put are ``missing``."""

    def __init__(self, dtype: Any, missing: float = -1) -> None:
        self.expected = 0
        """Rows to make room for at once; room that is never used takes no memory."""
        self._missing = missing
        self._values: NDArray[Any] = np.empty(0, dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self._values.dtype

    def extend(self, values: NDArray[Any]) -> None:
        """Append values."""
        start = self._length
        self._reach(start + len(values))
        self._values[start : self._length] = values

    def put(self, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Set the values of some rows, which may lie behind the end."""
        if not len(rows):
            return
        start, end = self._length, int(rows[-1]) + 1
        if end > start:
            self._reach(end)
            self._values[start:end] = self._missing
        self._values[rows] = values

    def peek(self) -> NDArray[Any]:
        """The values so far."""
        return self._values[: self._length]

    def tail(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The values at some rows, as far as they were put."""
        if not self._length:
            return np.full(len(rows), self._missing, self._values.dtype)
        known = rows < self._length
        return np.where(known, self._values[np.where(known, rows, 0)], self._missing)

    def take(self, length: int | None = None) -> NDArray[Any]:
        """Hand out the array and forget it; a column that was never put takes no memory."""
        if length is not None:
            if not self._length:
                return np.broadcast_to(self._values.dtype.type(self._missing), length)
            start = self._length
            self._reach(length)
            self._values[start:length] = self._missing
        values = self._values[: self._length]
        self._values = np.empty(0, values.dtype)
        return values

    def _reach(self, length: int) -> None:
        if length > len(self._values):
            room = max(_FIRST, length, self.expected, int(len(self._values) * _GROWTH))
            grown = np.empty(room, self._values.dtype)
            grown[: self._length] = self._values[: self._length]
            self._values = grown
        self._length = max(self._length, length)


def packed(values: Sequence[Any], code: str) -> NDArray[Any]:
    """Numbers as an array that cannot be written to, in half the time of ``numpy.fromiter``.

    Args:
        values: Whole numbers, or any numbers for code ``d``.
        code: Type as in module ``struct``: ``i``, ``q`` or ``d``.

    Raises:
        ValueError: A value is no such number, or too large.
    """
    try:
        return np.frombuffer(struct.pack(f"{len(values)}{code}", *values), code)
    except struct.error as error:
        raise ValueError(str(error)) from None


def integers(values: Sequence[Any], dtype: Any = np.int64) -> NDArray[np.int64]:
    """Whole numbers; what does not fit the type is *not recorded*."""
    try:
        found = packed(values, "q")
    except ValueError:
        found = packed([to_int(value) for value in values], "q")
    if dtype != np.int64:
        found = np.where(found == found.astype(dtype), found, -1)
    return found


def texts_of(raws: Sequence[Raw]) -> list[bytes]:
    """The bytes of JSON values, or nothing when all are empty.

    The byte 0 stands in none of them, so one cut parts them all.
    """
    joined = b"\0".join(raws)
    if len(joined) < len(raws):
        return []
    texts = joined.split(b"\0")
    return texts if len(texts) == len(raws) else [bytes(raw) for raw in raws]
