"""Reads the wire format of protobuf without trusting one length in it.

Only what the profiles need: numbers, bytes inside bytes, and fixed-width values to skip over.
"""

from collections.abc import Iterator

from workbench.trace.formats.content import Bytes

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MASK = 2**64 - 1
_LONGEST_VARINT = 63


class WireError(Exception):
    """The bytes are no protobuf message from some byte on."""

    def __init__(self, offset: int, why: str, *, cut: bool = False) -> None:
        super().__init__(why)
        self.offset = offset
        self.why = why
        self.cut = cut
        """The message ends too early."""


def varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """The number at a byte, and where the next field begins."""
    if at < end and data[at] < 0x80:
        return data[at], at + 1
    result = shift = 0
    start = at
    while at < end:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & _MASK, at
        shift += 7
        if shift > _LONGEST_VARINT:
            raise WireError(start, "a number has more than ten bytes")
    raise WireError(start, "a number is cut", cut=True)


def fields(data: Bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message as (number, wire type, value or start, end of the field).

    Of length-delimited fields the third item is where their bytes begin.

    Raises:
        WireError: A field reaches beyond the message, or there is no such wire type.
    """
    while at < end:
        begun = at
        key, at = varint(data, at, end)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = varint(data, at, end)
        elif wire == BYTES:
            length, value = varint(data, at, end)
            at = value + length
        elif wire in (FIXED64, FIXED32):
            value, at = at, at + (8 if wire == FIXED64 else 4)
        else:
            raise WireError(begun, f"there is no wire type {wire}")
        if at > end:
            raise WireError(begun, f"field {number} is longer than what holds it", cut=True)
        if not number:
            raise WireError(begun, "there is no field 0")
        yield number, wire, value, at


def signed(value: int) -> int:
    """An int64 from its unsigned form."""
    return value - 2**64 if value >= 2**63 else value


def text(data: Bytes, start: int, end: int, longest: int = 4096) -> str:
    """Bytes of a string field as text, cut where it is absurdly long."""
    return bytes(data[start : min(end, start + longest)]).decode("utf-8", "replace")
