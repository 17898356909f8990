"""The messages of Perfetto's protobuf trace that profilers write, as far as they are read here.

Field numbers are those of Perfetto's published schema (``protos/perfetto/trace``). What a sequence
interned before (names, categories) is kept in its ``Sequence``, as the format asks for.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench.trace.formats.content import Bytes
from workbench.trace.formats.protobuf import BYTES, VARINT, fields, signed, text, varint

PACKET = 1
TIMESTAMP, SEQUENCE_ID, TRACK_EVENT, INTERNED = 8, 10, 11, 12
CLOCK_SNAPSHOT, CLEARED, COMPRESSED = 6, 41, 50
COUNTER_EVENT, RENDER_STAGE, CLOCK_ID, DEFAULTS, TRACK = 52, 53, 58, 59, 60
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4

_SEQUENCE_FLAGS = 13
_STATE_CLEARED = 1
_DEEPEST = 32

_INTERNED: dict[int, str] = {
    1: "categories",
    2: "names",
    3: "keys",
    23: "contexts",
    24: "stages",
    29: "texts",
    1000: "kernels",
    1001: "launch_keys",
}
"""Field of InternedData, and the table that it fills; 1000 and 1001 are of compute kernels."""
_NAME_IN = {"kernels": 3}
"""Where the text stands, if not in field 2: a kernel's demangled name."""

Span = tuple[int, int]


@dataclass(kw_only=True)
class Sequence:
    """What one writer of packets has said so far."""

    tables: dict[str, dict[int, str]] = field(
        default_factory=lambda: {name: {} for name in _INTERNED.values()}
    )
    clock: int | None = None
    """Default clock of its packets."""
    default_track: int = 0
    clocks: dict[int, tuple[int, int, bool]] = field(default_factory=dict)
    """Clocks of its own: last moment, nanoseconds a unit, and whether stamps add up."""


@dataclass(kw_only=True, slots=True)
class Packet:
    """One packet: its stamp and where its messages are."""

    timestamp: int | None = None
    clock: int | None = None
    sequence: int = 0
    cleared: bool = False
    spans: dict[int, Span] = field(default_factory=dict)


@dataclass(kw_only=True, slots=True)
class Event:
    """A TrackEvent."""

    type: int = 0
    track: int | None = None
    name: str = ""
    category: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    value: float | None = None


@dataclass(kw_only=True, slots=True)
class Stage:
    """A GpuRenderStageEvent: one piece of work on a queue of a GPU."""

    gpu: int = 0
    duration: int = 0
    queue: str = ""
    stage: str = ""
    name: str = ""
    event_id: int = 0
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True, slots=True)
class Track:
    """A TrackDescriptor."""

    uuid: int = 0
    parent: int = 0
    name: str = ""
    process: str | None = None
    pid: int | None = None
    tid: int | None = None


def read_packet(data: Bytes, span: Span) -> Packet:
    """The parts of a TracePacket that are read."""
    packet = Packet()
    for number, wire, value, end in fields(data, *span):
        if wire == BYTES:
            packet.spans[number] = (value, end)
        elif number == TIMESTAMP:
            packet.timestamp = value
        elif number == CLOCK_ID:
            packet.clock = value
        elif number == SEQUENCE_ID:
            packet.sequence = value
        elif number == CLEARED:
            packet.cleared = packet.cleared or bool(value)
        elif number == _SEQUENCE_FLAGS:
            packet.cleared = packet.cleared or bool(value & _STATE_CLEARED)
    return packet


def intern(data: Bytes, span: Span, sequence: Sequence) -> None:
    """Take the names of an InternedData message."""
    for number, wire, start, end in fields(data, *span):
        name = _INTERNED.get(number)
        if name is None or wire != BYTES:
            continue
        iid, found = 0, ""
        for inner, kind, value, stop in fields(data, start, end):
            if inner == 1 and kind == VARINT:
                iid = value
            elif kind == BYTES and inner in (2, _NAME_IN.get(name, 2)):
                found = text(data, value, stop, longest=1 << 20)
        sequence.tables[name][iid] = found


def take_defaults(data: Bytes, span: Span, sequence: Sequence) -> None:
    """Take the defaults that a writer states for its packets."""
    for number, wire, value, end in fields(data, *span):
        if number == CLOCK_ID and wire == VARINT:
            sequence.clock = value
        elif number == TRACK_EVENT and wire == BYTES:
            for inner, kind, uuid, _ in fields(data, value, end):
                if inner == 11 and kind == VARINT:
                    sequence.default_track = uuid


def take_clocks(data: Bytes, span: Span, sequence: Sequence) -> None:
    """Take the clocks of a snapshot, of which a writer's own ones matter."""
    for number, wire, start, end in fields(data, *span):
        if number == 1 and wire == BYTES:
            told = {n: value for n, kind, value, _ in fields(data, start, end) if kind == VARINT}
            clock = told.get(1, 0), told.get(2, 0), told.get(4, 1) or 1, bool(told.get(3))
            sequence.clocks[clock[0]] = (clock[1] * clock[2], clock[2], clock[3])


def read_track(data: Bytes, span: Span) -> Track:
    """A track, with the process or thread that it stands for."""
    track = Track()
    for number, wire, value, end in fields(data, *span):
        if number == 1 and wire == VARINT:
            track.uuid = value
        elif number == 5 and wire == VARINT:
            track.parent = value
        elif number in (2, 10, 13) and wire == BYTES:
            track.name = text(data, value, end)
        elif number in (3, 4) and wire == BYTES:
            told = _process_or_thread(data, (value, end))
            track.pid = told.get(1)
            if number == 3:
                track.process = told.get(6, "")
            else:
                track.tid, track.name = told.get(2), told.get(5, track.name)
    return track


def _process_or_thread(data: Bytes, span: Span) -> dict[int, Any]:
    """Numbers and texts of a descriptor, by field."""
    return {
        number: signed(value) if wire == VARINT else text(data, value, end)
        for number, wire, value, end in fields(data, *span)
        if wire in (VARINT, BYTES)
    }


def read_event(data: Bytes, span: Span, sequence: Sequence) -> Event:
    """A TrackEvent with its names looked up."""
    event = Event()
    for number, wire, value, end in fields(data, *span):
        if number == 9:
            event.type = value
        elif number == 11:
            event.track = value
        elif number == 10:
            event.name = sequence.tables["names"].get(value, "")
        elif number == 23:
            event.name = text(data, value, end, longest=1 << 20)
        elif number == 3:
            event.category = event.category or _first(data, wire, value, end, sequence)
        elif number == 22:
            event.category = event.category or text(data, value, end)
        elif number == 4 and wire == BYTES:
            key, told = _annotation(data, (value, end), sequence, 0)
            event.args[key] = told
        elif number == 30:
            event.value = float(signed(value))
        elif number == 44:
            event.value = _double(data, value)
    return event


def read_stage(data: Bytes, span: Span, sequence: Sequence) -> Stage:
    """A piece of work on a GPU; the arguments of its launch keep the names that the file gives."""
    tables, stage = sequence.tables, Stage()
    kernel = ""
    for number, wire, value, end in fields(data, *span):
        if number == 1:
            stage.event_id = value
        elif number == 2:
            stage.duration = value
        elif number == 11:
            stage.gpu = signed(value)
        elif number == 13:
            stage.queue = tables["stages"].get(value, "")
        elif number == 14:
            stage.stage = tables["stages"].get(value, "")
        elif number == 17:
            stage.name = text(data, value, end, longest=1 << 20)
        elif number == 20:
            stage.name = tables["names"].get(value, "")
        elif number == 19:
            kernel = tables["kernels"].get(value, "")
        elif number == 6 and wire == BYTES:
            pair = {n: text(data, a, b) for n, kind, a, b in fields(data, value, end) if kind == 2}
            stage.args[pair.get(1, "")] = pair.get(2, "")
        elif number == 21 and wire == BYTES:
            stage.args |= _launch(data, (value, end), sequence)
    stage.name = stage.name or kernel or stage.stage
    return stage


def _launch(data: Bytes, span: Span, sequence: Sequence) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, wire, value, end in fields(data, *span):
        if number in (1, 2) and wire == BYTES:
            extent = {n: size for n, kind, size, _ in fields(data, value, end) if kind == VARINT}
            found["grid" if number == 1 else "block"] = [extent.get(n, 1) for n in (1, 2, 3)]
        elif number == 3 and wire == BYTES:
            key = ""
            told: Any = None
            for inner, kind, inside, stop in fields(data, value, end):
                if inner == 1:
                    key = sequence.tables["launch_keys"].get(inside, "")
                elif inner == 2 and kind == BYTES:
                    key = text(data, inside, stop)
                elif inner in (3, 4):
                    told = signed(inside)
            found[key] = told
    return found


def _first(data: Bytes, wire: int, value: int, end: int, sequence: Sequence) -> str:
    """The category of a number, or of the first of several packed ones."""
    if wire == BYTES:
        numbers = _packed(data, value, end)
        value = next(numbers, 0)
    return sequence.tables["categories"].get(value, "")


def _packed(data: Bytes, at: int, end: int) -> Iterator[int]:
    while at < end:
        value, at = varint(data, at, end)
        yield value


def _annotation(data: Bytes, span: Span, sequence: Sequence, depth: int) -> tuple[str, Any]:
    """Name and value of a DebugAnnotation, as JSON would hold them; no value is an empty list."""
    key = ""
    told: Any = []
    inside: dict[str, Any] = {}
    items: list[Any] = []
    for number, wire, value, end in fields(data, *span):
        if number == 1:
            key = sequence.tables["keys"].get(value, "")
        elif number == 10:
            key = text(data, value, end)
        elif number in (3, 7):
            told = value
        elif number == 4:
            told = signed(value)
        elif number == 2:
            told = bool(value)
        elif number == 5:
            told = _double(data, value)
        elif number in (6, 9):
            told = text(data, value, end, longest=1 << 20)
        elif number == 17:
            told = sequence.tables["texts"].get(value, "")
        elif number in (11, 12) and wire == BYTES and depth < _DEEPEST:
            name, each = _annotation(data, (value, end), sequence, depth + 1)
            if number == 11:
                inside[name] = each
            else:
                items.append(each)
    return key, inside or items or told


def _double(data: Bytes, at: int) -> float:
    found: float = struct.unpack("<d", bytes(data[at : at + 8]))[0]
    return found
