"""Plain Python objects as they were: containers, closures, globals, generators, arrays."""

import io
import random
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from types import CellType
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True, kw_only=True)
class SavedDict:
    """The keys and values of a dictionary, or of an object's attributes, in order."""

    target: dict[Any, Any]
    items: tuple[tuple[Any, Any], ...]

    def restore(self) -> None:
        """Put the same keys and values back, in the same order."""
        kind = OrderedDict if isinstance(self.target, OrderedDict) else dict
        now = tuple(kind.items(self.target))
        if len(now) == len(self.items) and all(
            a is c and b is d for (a, b), (c, d) in zip(now, self.items, strict=True)
        ):
            return
        kind.clear(self.target)
        for key, value in self.items:
            kind.__setitem__(self.target, key, value)


@dataclass(frozen=True, kw_only=True)
class SavedItems:
    """The members of a list, deque, set or byte array."""

    target: Any
    items: Any

    def restore(self) -> None:
        """Put the same members back, in the same order."""
        target = self.target
        if isinstance(target, list):
            list.__setitem__(target, slice(None), self.items)
        elif isinstance(target, deque):
            deque.clear(target)
            deque.extend(target, self.items)
        elif isinstance(target, set):
            set.clear(target)
            set.update(target, self.items)
        else:
            target[:] = self.items


@dataclass(frozen=True, kw_only=True)
class SavedCell:
    """A variable that a function closed over."""

    cell: CellType
    filled: bool
    value: Any

    def restore(self) -> None:
        """Bind the variable to the same object again."""
        if self.filled:
            self.cell.cell_contents = self.value
        elif _filled(self.cell):
            del self.cell.cell_contents


@dataclass(frozen=True, kw_only=True)
class SavedGlobals:
    """The global names that a function assigns."""

    namespace: dict[str, Any]
    names: tuple[str, ...]
    values: dict[str, Any]

    def restore(self) -> None:
        """Bind the names to the same objects again; unbind those that were not bound."""
        for name in self.names:
            if name in self.values:
                self.namespace[name] = self.values[name]
            else:
                self.namespace.pop(name, None)


@dataclass(frozen=True, kw_only=True)
class SavedSlots:
    """The attributes of an object whose class has ``__slots__``."""

    target: Any
    values: dict[str, Any]
    names: tuple[str, ...]

    def restore(self) -> None:
        """Set the attributes that differ, and delete those that were not set."""
        for name in self.names:
            if name in self.values:
                if getattr(self.target, name, None) is not self.values[name]:
                    object.__setattr__(self.target, name, self.values[name])
            elif hasattr(self.target, name):
                object.__delattr__(self.target, name)


@dataclass(frozen=True, kw_only=True)
class SavedArray:
    """The numbers of a numpy array."""

    target: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]

    def restore(self) -> None:
        """Write the numbers back into the same array; a file that did not change is not written."""
        if not self.target.flags.writeable:
            return
        mapped = isinstance(self.target, np.memmap)
        if not mapped or self.target.tobytes() != self.values.tobytes():
            self.target[...] = self.values


@dataclass(frozen=True, kw_only=True)
class SavedPosition:
    """How far a file that is only read has been read."""

    file: Any
    position: int

    def restore(self) -> None:
        """Go back; a worker that inherited the file has moved it without our buffer knowing."""
        if not self.file.closed:
            self.file.seek(0, io.SEEK_END)  # drops what is buffered
            self.file.seek(self.position)


@dataclass(frozen=True, kw_only=True)
class SavedGenerator:
    """The state of a random number generator object."""

    put_back: Callable[[Any], Any]
    state: Any

    def restore(self) -> None:
        """Put the generator back to where it was."""
        self.put_back(self.state)


def save_dict(target: dict[Any, Any]) -> SavedDict:
    """Remember keys, values and order."""
    kind = OrderedDict if isinstance(target, OrderedDict) else dict
    return SavedDict(target=target, items=tuple(kind.items(target)))


def save_items(target: Any) -> SavedItems:
    """Remember the members of a list, deque, set or byte array."""
    return SavedItems(target=target, items=bytes(target) if _bytes(target) else tuple(target))


def save_cell(cell: CellType) -> SavedCell:
    """Remember what a closed-over variable is bound to."""
    filled = _filled(cell)
    return SavedCell(cell=cell, filled=filled, value=cell.cell_contents if filled else None)


def save_globals(namespace: dict[str, Any], names: tuple[str, ...]) -> SavedGlobals:
    """Remember what the global ``names`` are bound to."""
    values = {name: namespace[name] for name in names if name in namespace}
    return SavedGlobals(namespace=namespace, names=names, values=values)


def save_slots(target: Any, names: tuple[str, ...]) -> SavedSlots:
    """Remember the attributes ``names``."""
    values = {name: getattr(target, name) for name in names if hasattr(target, name)}
    return SavedSlots(target=target, names=names, values=values)


def is_reader(target: object) -> bool:
    """Whether an object is an open file that can only be read."""
    if not isinstance(target, io.FileIO | io.BufferedReader | io.TextIOWrapper):
        return False
    return not target.closed and target.seekable() and target.readable() and not target.writable()


def save_position(file: Any) -> SavedPosition | None:
    """Remember the position; ``None`` where the file does not tell it, as amid its own lines."""
    try:
        return SavedPosition(file=file, position=file.tell())
    except (OSError, ValueError):
        return None


def save_generator(generator: Any) -> SavedGenerator | None:
    """Remember the state of a random number generator; ``None`` when it is not one."""
    if isinstance(generator, torch.Generator):
        return SavedGenerator(put_back=generator.set_state, state=generator.get_state())
    if isinstance(generator, random.Random) and not isinstance(generator, random.SystemRandom):
        return SavedGenerator(put_back=generator.setstate, state=generator.getstate())
    if isinstance(generator, np.random.RandomState):
        return SavedGenerator(put_back=generator.set_state, state=generator.get_state())
    if isinstance(generator, np.random.Generator):
        return save_generator(generator.bit_generator)
    if isinstance(generator, np.random.BitGenerator):
        bits = generator

        def put_back(state: Any) -> None:
            bits.state = state

        return SavedGenerator(put_back=put_back, state=bits.state)
    return None


def slot_names(target: object) -> tuple[str, ...]:
    """The names in the ``__slots__`` of the classes of ``target``."""
    names: list[str] = []
    for kind in type(target).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if name in {"__dict__", "__weakref__"}:
                continue
            private = name.startswith("__") and not name.endswith("__")
            names.append(f"_{kind.__name__.lstrip('_')}{name}" if private else name)
    return tuple(names)


def _filled(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _bytes(target: Any) -> bool:
    return isinstance(target, bytearray)
