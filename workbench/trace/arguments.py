"""The entries of ``args`` as columns: what each group of categories may hold, and where it goes."""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace.categories import Group
from workbench.trace.columns import Codes, Column, RawCodes
from workbench.trace.lenient import to_int, to_text

NUMBERS: dict[str, type[np.signedinteger[Any]]] = {
    "correlation": np.int64,
    "external_id": np.int64,
    "sequence": np.int64,
    "forward_thread": np.int64,
    "python_id": np.int64,
    "python_parent": np.int64,
    "python_module": np.int32,
    "device": np.int16,
    "stream": np.int32,
    "bytes": np.int64,
}
TEXTS = ("shapes", "types", "strides")

_HOST = ("external_id", "sequence")
_CALL = ("correlation", "external_id", "bytes")
_DEVICE = ("correlation", "external_id", "device", "stream", "bytes")
PLAN: dict[Group, tuple[str, ...]] = {
    Group.PYTHON: ("python_id", "python_parent", "python_module"),
    Group.HOST: _HOST,
    Group.CALL: _CALL,
    Group.DEVICE: _DEVICE,
    Group.ANY: tuple(name for name in NUMBERS if name != "forward_thread"),
}
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "external_id": ("external_id_old",),
    "stream": ("stream_npu",),
    "bytes": ("size",),
    "correlation": ("connection",),
    "shapes": ("shapes_old",),
}
"""Other spellings of a column, read where the category is not one of today's torch."""

_GETTERS: dict[str, Callable[[Any], Any]] = {}
LAUNCH_INTEGERS = ("registers", "shared_memory")
LAUNCH_FLOATS = ("occupancy", "blocks_per_sm", "warps_per_sm")
_COLLECTIVE_TEXTS = ("group", "description", "ranks", "dtype")
_COLLECTIVE_NUMBERS = (
    "group_size",
    "in_elements",
    "out_elements",
    "rank",
    "source",
    "destination",
)


class ArgumentColumns:
    """Growing columns of everything that stands in ``args`` of duration events."""

    def __init__(self) -> None:
        self.numbers = {name: Column(dtype) for name, dtype in NUMBERS.items()}
        self.texts = {name: Column(np.int32) for name in TEXTS}
        self.codes = {name: RawCodes() for name in (*TEXTS, "extent")}
        self.stack = Column(np.int32)
        self.stacks = Codes()
        self.launch_row = Column(np.int64)
        self.grid = Column(np.int32)
        self.block = Column(np.int32)
        self.launch = {name: Column(np.int32) for name in LAUNCH_INTEGERS}
        self.launch |= {name: Column(np.float32) for name in LAUNCH_FLOATS}
        self.collectives: list[dict[str, Any]] = []

    def add(self, arguments: Sequence[Any], rows: NDArray[np.int64], group: Group) -> None:
        """Take the arguments of the given rows, which belong to one group of categories."""
        for name in PLAN[group]:
            values = _integers(arguments, name)
            if group is Group.ANY:
                values = _first_of(values, arguments, OTHER_NAMES.get(name, ()))
            _put_known(self.numbers[name], rows, values)
        if group is Group.PYTHON:
            return
        if group in (Group.HOST, Group.ANY):
            self._add_operators(arguments, rows, old=group is Group.ANY)
        if group in (Group.DEVICE, Group.ANY):
            self._add_launches(arguments, rows)
        if group is not Group.CALL:
            self._add_collectives(arguments, rows)

    def _add_operators(
        self, arguments: Sequence[Any], rows: NDArray[np.int64], *, old: bool
    ) -> None:
        for name in TEXTS:
            values = self._raw_codes(name, name, arguments)
            if old and name in OTHER_NAMES and (values < 0).any():
                other = self._raw_codes(name, OTHER_NAMES[name][0], arguments)
                values = np.where(values < 0, other, values)
            _put_known(self.texts[name], rows, values)
        sequenced = np.flatnonzero(self.numbers["sequence"].tail(rows) >= 0)
        if len(sequenced):
            some = [arguments[i] for i in sequenced.tolist()]
            threads = _integers(some, "forward_thread")
            _put_known(self.numbers["forward_thread"], rows[sequenced], threads)
        stacks = [argument.stack for argument in arguments]
        if stacks.count(None) < len(stacks):
            texts = [to_text(stack) for stack in stacks]
            codes = [self.stacks[text] if text else -1 for text in texts]
            _put_known(self.stack, rows, np.array(codes))

    def _add_launches(self, arguments: Sequence[Any], rows: NDArray[np.int64]) -> None:
        grids = self._raw_codes("extent", "grid", arguments)
        launched = np.flatnonzero(grids >= 0)
        if not len(launched):
            return
        if len(launched) < len(rows):
            arguments = [arguments[i] for i in launched.tolist()]
        self.launch_row.extend(rows[launched])
        self.grid.extend(grids[launched])
        self.block.extend(self._raw_codes("extent", "block", arguments))
        for name in LAUNCH_INTEGERS:
            values = _integers(arguments, name)
            self.launch[name].extend(np.where(values == values.astype(np.int32), values, -1))
        for name in LAUNCH_FLOATS:
            getter = attrgetter(name)
            self.launch[name].extend(np.fromiter(map(getter, arguments), np.float64))

    def _add_collectives(self, arguments: Sequence[Any], rows: NDArray[np.int64]) -> None:
        for row, argument in zip(rows.tolist(), arguments, strict=True):
            if argument.collective is None:
                continue
            entry: dict[str, Any] = {"row": row, "name": to_text(argument.collective)}
            entry |= {name: to_text(getattr(argument, name)) for name in _COLLECTIVE_TEXTS}
            for name in _COLLECTIVE_NUMBERS:
                entry[name] = _known(getattr(argument, name))
            entry["sequence"] = _known(argument.collective_sequence)
            self.collectives.append(entry)

    def _raw_codes(self, table: str, attribute: str, arguments: Sequence[Any]) -> NDArray[np.int64]:
        codes = self.codes[table]
        raws: Iterable[bytes] = map(bytes, map(attrgetter(attribute), arguments))
        return np.fromiter(map(codes.__getitem__, raws), np.int64, len(arguments))


def _known(value: Any) -> int | None:
    number = to_int(value)
    return None if value is None or number == -1 else number


def _put_known(column: Column, rows: NDArray[np.int64], values: NDArray[np.int64]) -> None:
    known = values != -1
    if known.all():
        column.put(rows, values)
    elif known.any():
        column.put(rows[known], values[known])


def _integers(arguments: Sequence[Any], name: str) -> NDArray[np.int64]:
    getter = attrgetter(name)
    dtype = NUMBERS.get(name, np.int64)
    try:
        values = np.fromiter(map(getter, arguments), np.int64, len(arguments))
    except (OverflowError, TypeError):
        values = np.array([to_int(getter(argument)) for argument in arguments], np.int64)
    if dtype is not np.int64:
        values = np.where(values == values.astype(dtype), values, -1)
    return values


def _first_of(
    values: NDArray[np.int64], arguments: Sequence[Any], names: Sequence[str]
) -> NDArray[np.int64]:
    for name in names:
        if (values != -1).all():
            break
        values = np.where(values == -1, _integers(arguments, name), values)
    return values
