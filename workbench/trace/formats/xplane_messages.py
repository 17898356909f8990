"""The messages of an XSpace, field by field: planes, lines, events and what their numbers mean.

Our own reading of the published schema (xplane.proto): an XSpace holds planes, a plane holds lines
and two tables that give events and statistics their names, a line holds events.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from workbench.trace.formats.content import Bytes
from workbench.trace.formats.protobuf import BYTES, VARINT, WireError, fields, signed, text, varint

PLANE, PLANE_NAME, PLANE_LINE, PLANE_EVENT_NAMES, PLANE_STAT_NAMES, PLANE_STAT = 1, 2, 3, 4, 5, 6
_LINE_ID, _LINE_NAME, _LINE_TIME, _LINE_EVENT, _LINE_SHOWN = 1, 2, 3, 4, 11
_EVENT_NAME, _EVENT_OFFSET, _EVENT_LENGTH, _EVENT_STAT = 1, 2, 3, 4
_STAT_NAME, _STAT_DOUBLE, _STAT_UINT, _STAT_INT, _STAT_TEXT, _STAT_REFERENCE = 1, 2, 3, 4, 5, 7
_NAME, _SHOWN_NAME = 2, 4
_LONG = 0x80
TOLD_BY_EVENTS = frozenset(
    ("correlation_id", "run_id", "step_num", "device_ordinal", "hlo_op", "tf_op")
)
"""The statistics of events that are looked at; all others are passed over."""

LINE_LIMIT = 100_000
_NAME_LIMIT = 2_000_000
"""Far above any real profile: what claims more is made to exhaust memory or time."""


class Span(NamedTuple):
    """Where a message stands."""

    start: int
    end: int


class Event(NamedTuple):
    """One event of a line; times are picoseconds."""

    name: int
    """Number in the plane's table of names."""
    offset: int
    length: int
    told: dict[str, Any] | None
    """Those of its statistics that are looked at."""


@dataclass(kw_only=True)
class Plane:
    """A plane without its events."""

    name: str = ""
    lines: list[Span] = field(default_factory=list)
    event_names: dict[int, str] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    stats: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def told(self) -> frozenset[int]:
        """Numbers of the statistics of events that are looked at."""
        return frozenset(code for code, name in self.stat_names.items() if name in TOLD_BY_EVENTS)


@dataclass(kw_only=True)
class Line:
    """A line without its events."""

    id: int = 0
    name: str = ""
    start_ns: int = 0
    span: Span


def planes(data: Bytes, end: int) -> Iterator[Span]:
    """Where the planes stand.

    Raises:
        WireError: From some byte on this is no XSpace.
    """
    found = 0
    for number, wire, start, stop in fields(data, 0, end):
        if number == PLANE and wire == BYTES:
            found += 1
            if found > LINE_LIMIT:
                raise WireError(start, f"there are more than {LINE_LIMIT:,} planes")
            yield Span(start, stop)


def read_plane(data: Bytes, span: Span) -> Plane:
    """A plane's name, tables and statistics, and where its lines stand."""
    plane = Plane()
    stats: list[Span] = []
    for number, wire, start, end in fields(data, *span):
        if wire != BYTES:
            continue
        if number == PLANE_NAME:
            plane.name = text(data, start, end)
        elif number in (PLANE_LINE, PLANE_STAT):
            found = plane.lines if number == PLANE_LINE else stats
            found.append(Span(start, end))
            if len(found) > LINE_LIMIT:
                raise WireError(start, f"there are more than {LINE_LIMIT:,} lines")
        elif number in (PLANE_EVENT_NAMES, PLANE_STAT_NAMES):
            key, name = _named(data, Span(start, end))
            table = plane.event_names if number == PLANE_EVENT_NAMES else plane.stat_names
            table[key] = name
            if len(table) > _NAME_LIMIT:
                raise WireError(start, f"there are more than {_NAME_LIMIT:,} names")
    for stat in stats:
        name, value = read_stat(data, stat, plane.stat_names)
        plane.stats[name] = value
    return plane


def plane_name(data: Bytes, span: Span) -> str:
    """The name of a plane, which may be cut behind it."""
    for number, wire, start, end in fields(data, *span):
        if number == PLANE_NAME and wire == BYTES:
            return text(data, start, end)
        if number > PLANE_NAME:
            break
    return ""


def _named(data: Bytes, span: Span) -> tuple[int, str]:
    """An entry of a table of names: its key, and the name to show."""
    key, name, shown = 0, "", ""
    for number, wire, start, end in fields(data, *span):
        if number == 1 and wire == VARINT:
            key = start
        elif number == 2 and wire == BYTES:
            for inner, kind, begin, stop in fields(data, start, end):
                if kind == BYTES and inner == _NAME:
                    name = text(data, begin, stop)
                elif kind == BYTES and inner == _SHOWN_NAME:
                    shown = text(data, begin, stop)
    return key, shown or name


def read_stat(data: Bytes, span: Span, names: dict[int, str]) -> tuple[str, Any]:
    """A statistic's name and value; a value of a kind that is not looked at is ``None``."""
    name = ""
    value: Any = None
    for number, wire, start, end in fields(data, *span):
        if number == _STAT_NAME and wire == VARINT:
            name = names.get(start, "")
        elif number == _STAT_UINT and wire == VARINT:
            value = start
        elif number == _STAT_INT and wire == VARINT:
            value = signed(start)
        elif number == _STAT_TEXT and wire == BYTES:
            value = text(data, start, end)
        elif number == _STAT_REFERENCE and wire == VARINT:
            value = names.get(start)
    return name, value


def read_line(data: Bytes, span: Span) -> Line:
    """A line's name and beginning."""
    line = Line(span=span)
    for number, wire, start, end in fields(data, *span):
        if number == _LINE_ID and wire == VARINT:
            line.id = start
        elif number == _LINE_TIME and wire == VARINT:
            line.start_ns = signed(start)
        elif wire == BYTES and (number == _LINE_SHOWN or (number == _LINE_NAME and not line.name)):
            line.name = text(data, start, end) or line.name
    return line


def read_events(
    data: Bytes, line: Line, names: dict[int, str], wanted: frozenset[int]
) -> Iterator[Event]:
    """The events of a line; ``wanted`` are the numbers of the statistics that are looked at."""
    start, end = line.span
    copy = bytes(data[start:end])  # bytes of a mapped file cost twice as much to look at
    try:
        for number, wire, begin, stop in fields(copy, 0, end - start):
            if number == _LINE_EVENT and wire == BYTES:
                yield _event(copy, begin, stop, names, wanted)
    except WireError as error:
        raise WireError(start + error.offset, error.why, cut=error.cut) from None


def _event(data: bytes, at: int, end: int, names: dict[int, str], wanted: frozenset[int]) -> Event:
    """One event. There may be millions: the fields in their usual form are read without calls."""
    name = offset = length = 0
    told: dict[str, Any] | None = None
    while at < end:
        begun, key = at, data[at]
        if key == _EVENT_STAT << 3 | BYTES:
            size, at = varint(data, at + 1, end)
            stop = at + size
            if stop > end:
                raise WireError(begun, "a statistic is longer than its event")
            usual = size > 1 and data[at] == _STAT_NAME << 3 and data[at + 1] < _LONG
            if (data[at + 1] if usual else _stat_number(data, at, stop)) in wanted:
                known, value = read_stat(data, Span(at, stop), names)
                told = told or {}
                told[known] = value
            at = stop
        elif key == _EVENT_NAME << 3:
            name, at = varint(data, at + 1, end)
        elif key == _EVENT_OFFSET << 3:
            offset, at = varint(data, at + 1, end)
        elif key == _EVENT_LENGTH << 3:
            length, at = varint(data, at + 1, end)
        else:
            _, _, _, at = next(fields(data, begun, end))
    return Event(name, signed(offset), signed(length), told)


def _stat_number(data: bytes, at: int, end: int) -> int:
    """The number of a statistic, which stands first; 0 where it does not."""
    if at >= end or data[at] != _STAT_NAME << 3:
        return 0
    return varint(data, at + 1, end)[0]
