"""Reads a pickle that holds nothing but plain containers, numbers and text.

A pickle is a program. This interpreter knows only the instructions that build None, booleans,
numbers, text, lists, tuples and dictionaries; there is no instruction by which it could import,
call or look anything up, so a hostile file has nothing to call. It also bounds what a small file
may become: every byte of the file makes at most a fixed amount of memory.
"""

import struct
from collections.abc import Callable
from typing import Any, NoReturn

from workbench.errors import TraceError

MOST_OPEN = 200
"""Containers that are being filled inside each other; a snapshot has about eight."""
MOST_WAITING = 20_000
"""Values that wait for their container; picklers hand over a thousand at a time."""
MOST_DIGITS = 9
"""Bytes of a whole number; addresses have eight, and one for the sign."""
BYTES_A_CONTAINER = 4
"""A file must have so many bytes for each container in it (real snapshots: 50 and more)."""
SPARE_CONTAINERS = 1000

_NAMES = {
    b"c": "GLOBAL (imports a name)",
    b"\x93": "STACK_GLOBAL (imports a name)",
    b"R": "REDUCE (calls something)",
    b"i": "INST (makes an object)",
    b"o": "OBJ (makes an object)",
    b"\x81": "NEWOBJ (makes an object)",
    b"\x92": "NEWOBJ_EX (makes an object)",
    b"b": "BUILD (changes an object)",
    b"P": "PERSID (asks for an object from elsewhere)",
    b"Q": "BINPERSID (asks for an object from elsewhere)",
    b"\x82": "EXT1 (a registered name)",
    b"\x83": "EXT2 (a registered name)",
    b"\x84": "EXT4 (a registered name)",
    b"\x97": "NEXT_BUFFER (memory from elsewhere)",
    b"\x98": "READONLY_BUFFER (memory from elsewhere)",
}


class _Stopped(Exception):  # noqa: N818
    """The pickle said that it is complete."""


class _Machine:
    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        self.at = 0
        self.stack: list[Any] = []
        self.above: list[list[Any]] = []
        self.memo: list[Any] = []
        self.containers = SPARE_CONTAINERS + len(data) // BYTES_A_CONTAINER

    def run(self) -> object:
        try:
            self.follow()
        except _Stopped:
            if len(self.stack) != 1 or self.above:
                self.refuse("it ends with values left over")
        except IndexError:
            self.refuse("it takes a value that is not there")
        except UnicodeDecodeError:
            self.refuse("it holds text that is no UTF-8")
        return self.stack[0]

    def follow(self) -> None:
        data, end = self.data, len(self.data)
        while self.at < end:
            code = data[self.at]
            self.at += 1
            _DO[code](self)
        self.refuse("it ends before it is complete: copy the file again")

    def refuse(self, why: str) -> NoReturn:
        raise TraceError(
            f"{self.name} is a pickle that was not opened: {why} (byte {max(self.at - 1, 0):,}). "
            "Only memory snapshots of torch.cuda.memory._dump_snapshot are read, which hold plain "
            "numbers, text, lists and dictionaries; nothing in the file was run."
        )

    def take(self, count: int) -> bytes:
        at = self.at
        if count > len(self.data) - at:
            self.refuse("it ends in the middle of a value")
        self.at = at + count
        return self.data[at : at + count]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def push(self, value: object) -> None:
        self.stack.append(value)
        if len(self.stack) > MOST_WAITING:
            self.refuse("too many values wait for their container")

    def make(self, value: object) -> None:
        self.containers -= 1
        if self.containers < 0:
            self.refuse("it makes more containers than a snapshot of its size can hold")
        self.push(value)

    def until_mark(self) -> list[Any]:
        items, self.stack = self.stack, self.above.pop()
        return items


def load_plain(data: bytes, name: str = "the file") -> Any:
    """The value that a pickle of plain containers holds.

    Args:
        data: All of the pickle.
        name: How errors call it.

    Raises:
        TraceError: It asks for anything else than plain values, or is damaged.
    """
    return _Machine(data, name).run()


def _unknown(machine: _Machine) -> None:
    code = machine.data[machine.at - 1 : machine.at]
    said = _NAMES.get(code, f"0x{code.hex()}")
    machine.refuse(f"it uses the instruction {said}")


def _proto(machine: _Machine) -> None:
    if machine.number(1) > 5:
        machine.refuse("it is of a later pickle protocol than 5")


def _frame(machine: _Machine) -> None:
    if machine.number(8) > len(machine.data) - machine.at:
        machine.refuse("it ends before it is complete: copy the file again")


def _stop(machine: _Machine) -> None:
    raise _Stopped


def _mark(machine: _Machine) -> None:
    machine.above.append(machine.stack)
    machine.stack = []
    if len(machine.above) > MOST_OPEN:
        machine.refuse("its containers are nested too deeply")


def _whole(size: int, signed: bool = False) -> Callable[[_Machine], None]:
    def take(machine: _Machine) -> None:
        machine.push(int.from_bytes(machine.take(size), "little", signed=signed))

    return take


def _long1(machine: _Machine) -> None:
    size = machine.number(1)
    if size > MOST_DIGITS:
        machine.refuse("it holds a whole number of absurd size")
    machine.push(int.from_bytes(machine.take(size), "little", signed=True))


def _float(machine: _Machine) -> None:
    machine.push(struct.unpack(">d", machine.take(8))[0])


def _text(size: int) -> Callable[[_Machine], None]:
    def take(machine: _Machine) -> None:
        length = machine.number(size)
        machine.push(machine.take(length).decode("utf-8", "surrogatepass"))

    return take


def _constant(value: object) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(value)


def _tuple_of(count: int) -> Callable[[_Machine], None]:
    def make(machine: _Machine) -> None:
        stack = machine.stack
        if len(stack) < count:
            machine.refuse("it takes a value that is not there")
        items = tuple(stack[len(stack) - count :])
        del stack[len(stack) - count :]
        machine.make(items)

    return make


def _tuple(machine: _Machine) -> None:
    machine.make(tuple(machine.until_mark()))


def _append(machine: _Machine) -> None:
    value = machine.stack.pop()
    _list(machine).append(value)


def _appends(machine: _Machine) -> None:
    items = machine.until_mark()
    _list(machine).extend(items)


def _setitem(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _fill(machine, [key, value])


def _setitems(machine: _Machine) -> None:
    _fill(machine, machine.until_mark())


def _fill(machine: _Machine, items: list[Any]) -> None:
    target = machine.stack[-1]
    if type(target) is not dict or len(items) % 2:
        machine.refuse("it fills what is no dictionary")
    for key, value in zip(items[::2], items[1::2], strict=True):
        if type(key) is not str:  # numbers can be chosen so that all of them fall in one place
            machine.refuse("it uses a key that is no text")
        target[key] = value


def _list(machine: _Machine) -> list[Any]:
    target = machine.stack[-1]
    if type(target) is not list:
        machine.refuse("it appends to what is no list")
    return target


def _memoize(machine: _Machine) -> None:
    machine.memo.append(machine.stack[-1])


def _put(size: int) -> Callable[[_Machine], None]:
    def put(machine: _Machine) -> None:
        place = machine.number(size)
        if place > len(machine.memo):
            machine.refuse("it numbers its values with gaps")
        value = machine.stack[-1]
        if place == len(machine.memo):
            machine.memo.append(value)
        else:
            machine.memo[place] = value

    return put


def _get(size: int) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(machine.memo[machine.number(size)])


def _pop(machine: _Machine) -> None:
    machine.stack.pop()


_KNOWN: dict[bytes, Callable[[_Machine], None]] = {
    b"\x80": _proto,
    b"\x95": _frame,
    b".": _stop,
    b"(": _mark,
    b"0": _pop,
    b"N": _constant(None),
    b"\x88": _constant(True),
    b"\x89": _constant(False),
    b"K": _whole(1),
    b"M": _whole(2),
    b"J": _whole(4, signed=True),
    b"\x8a": _long1,
    b"G": _float,
    b"\x8c": _text(1),
    b"X": _text(4),
    b"\x8d": _text(8),
    b"]": lambda machine: machine.make([]),
    b"}": lambda machine: machine.make({}),
    b")": _constant(()),
    b"t": _tuple,
    b"\x85": _tuple_of(1),
    b"\x86": _tuple_of(2),
    b"\x87": _tuple_of(3),
    b"a": _append,
    b"e": _appends,
    b"s": _setitem,
    b"u": _setitems,
    b"\x94": _memoize,
    b"q": _put(1),
    b"r": _put(4),
    b"h": _get(1),
    b"j": _get(4),
}
_DO = tuple(_KNOWN.get(bytes((code,)), _unknown) for code in range(256))
