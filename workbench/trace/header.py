"""The header of a trace: what stands beside the events, the devices it lists, and the rank."""

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from workbench.chips import generation
from workbench.trace.frames import Frames
from workbench.trace.layout import TRACE_EVENTS
from workbench.trace.notes import Notes
from workbench.trace.repair import clean
from workbench.trace.schema import UNTYPED, end_of_first
from workbench.trace.table import Device, Violation
from workbench.trace.vendors import UNKNOWN

_TAIL_LIMIT = 1 << 25
_LARGEST_ENTRY = 1 << 20
_LONGEST_NUMBER, _MOST_DIGITS = 32, 19
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*"?(\d{1,19})')

_DEVICE_TYPES: tuple[tuple[str, str], ...] = (
    (r"nvidia|tesla|geforce|quadro|\b[abhlvt]\d{1,3}\b", "cuda"),
    (r"amd|radeon|instinct|gfx\d|\bmi\d{2,3}", "hip"),
    (r"intel|ponte|\barc\b|data center gpu|xpu", "xpu"),
    (r"mtia", "mtia"),
    (r"\bmlu|cambricon", "mlu"),
    (r"ascend|\bnpu", "npu"),
    (r"gaudi|habana|\bhl-?\d|hpu", "hpu"),
    (r"\btpu", "tpu"),
)
_TYPES = frozenset({"cpu", "fpga", UNKNOWN, *(kind for _, kind in _DEVICE_TYPES)})
OUR_TYPE = "workbenchDeviceType"
"""Beside a device's properties in files that we wrote from another format."""
_IN_FILE_NAME = (
    re.compile(r"(?<![a-zA-Z])rank[-_. ]?(\d{1,6})(?!\d)", re.I),
    re.compile(r"(?<![a-zA-Z])worker[-_. ]?(\d{1,6})(?!\d)", re.I),
    re.compile(r"(?<![a-zA-Z])TP[-_]?(\d{1,4})(?!\d)"),
)


def read_header(frames: Frames, before: bytes, notes: Notes) -> dict[str, Any]:
    """The header's entries, from the text before the events and what follows them.

    The frames stand behind the bracket that closed the events.
    """
    offset = frames.offset
    after = frames.rest(_TAIL_LIMIT)
    if after.lstrip(b" \t\r\n,").startswith(b"["):
        message = (
            "A second list stands behind the list of events, and was left out. Write it as a file "
            "of its own."
        )
        notes.add(Violation(code="second_list", message=message))
    if not before:
        if after.strip():
            _note_second(notes, offset)
        return {}
    text = before + b'"traceEvents":[]' + after
    header, rest = _decode(text, notes, offset)
    if header is None:
        header, _ = _decode(before + b'"":0}', notes, 0)
        if not after.strip():
            notes.truncated(offset + len(after), "the header after the events is missing")
        elif header is not None:
            notes.repaired("header after the events left out", offset)
    elif rest is not None:
        _note_second(notes, offset + rest - len(before) - len(b'"traceEvents":[]'))
    _note_second_list(after, header, notes)
    return _small(header if header is not None else salvaged(before + after, notes))


def open_header(before: bytes, notes: Notes) -> dict[str, Any]:
    """The header of a file that ends before its events do."""
    if not before:
        return {}
    header, _ = _decode(before + b'"":0}', notes, 0)
    return _small(header if header is not None else salvaged(before, notes))


def salvaged(text: bytes, notes: Notes) -> dict[str, Any]:
    """Of a header that does not parse, at least the time base."""
    notes.repaired("unreadable header left out", 0)
    match = _BASE.search(text)
    return {"baseTimeNanoseconds": int(match.group(1))} if match else {}


def _decode(text: bytes, notes: Notes, offset: int) -> tuple[dict[str, Any] | None, int | None]:
    """The first object of a text, and where more text follows it."""
    found, rest = _decode_strictly(text)
    if found is None:
        found, rest = _decode_strictly(clean(text.decode("utf-8", "replace")).encode())
        if found is not None:
            notes.repaired("header", offset)
    return found, rest


def _decode_strictly(text: bytes) -> tuple[dict[str, Any] | None, int | None]:
    end = None
    for _ in range(2):
        try:
            return _object(UNTYPED.decode(text[:end])), end
        except RecursionError:
            break
        except msgspec.DecodeError as error:
            end = end_of_first(error)
        if end is None:
            break
    return None, None


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _small(header: dict[str, Any]) -> dict[str, Any]:
    header.pop("traceEvents", None)
    header.pop("", None)
    return {key: value for key, value in header.items() if len(repr(value)) < _LARGEST_ENTRY}


def _note_second(notes: Notes, offset: int) -> None:
    notes.repaired("more text after the end of the document, left out", offset)


def _note_second_list(after: bytes, header: dict[str, Any] | None, notes: Notes) -> None:
    """A key that stands twice in an object: JSON does not say which one counts."""
    listed = None if header is None else header.get("traceEvents")
    if not listed and (header is not None or TRACE_EVENTS.search(after) is None):
        return
    count = len(listed) if isinstance(listed, list) else None
    how_many = "events" if count is None else f"{count:,} events"
    notes.add(
        Violation(
            code="second_list",
            message=f'"traceEvents" stands twice in the file: the second list ({how_many}) was '
            "left out. Write it as a file of its own.",
            count=count or 1,
        )
    )


def devices(header: Mapping[str, Any], used: set[int], default: str) -> tuple[Device, ...]:
    """The devices of the header, and those that only the events know.

    ROCm's tracer numbers agents, of which processors are the first: the only GPU of a header, its
    number 0, works as number 2. Where all that such a header describes are alike, so is this one.
    """
    listed = header.get("deviceProperties")
    found: dict[int, Device] = {}
    for position, entry in enumerate(listed if isinstance(listed, list) else []):
        if isinstance(entry, dict):
            index = whole(entry.get("id"))
            index = position if index is None else index
            found.setdefault(index, _device(index, entry, default))
    alike = {replace(device, index=0) for device in found.values()}
    other = alike.pop() if len(alike) == 1 else None
    if other is None or other.type != "hip":
        other = Device(index=0, type=default)
    for index in sorted(used - set(found)):
        found[index] = replace(other, index=index)
    return tuple(found.values())


def _device(index: int, entry: Mapping[str, Any], default: str) -> Device:
    name = entry.get("name")
    name = name if isinstance(name, str) else ""
    known = (kind for sign, kind in _DEVICE_TYPES if re.search(sign, name, re.I))
    major, minor = whole(entry.get("computeMajor")), whole(entry.get("computeMinor"))
    told = entry.get(OUR_TYPE)
    kind = told if isinstance(told, str) and told in _TYPES else next(known, default)
    arch = entry.get("gcnArchName")
    if not arch:
        arch = "" if major is None else generation(kind, name, major, minor or 0)
    return Device(
        index=index,
        type=kind,
        name=name,
        arch=str(arch),
        memory_bytes=whole(entry.get("totalGlobalMem")),
    )


def whole(value: Any) -> int | None:
    """A whole number that is not negative, or ``None``."""
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER:
        try:
            exact = Decimal(value)  # also 1.7e18, as programs write that know only doubles
        except InvalidOperation:
            return None
        if not exact.is_finite() or exact.adjusted() >= _MOST_DIGITS or exact % 1:
            return None
        value = int(exact)
    return value if type(value) is int and 0 <= value < 2**63 else None


def rank_and_world(header: Mapping[str, Any], file_name: str) -> tuple[int | None, int | None]:
    """Rank and world size, from ``distributedInfo``, else the rank from the file's name."""
    info = header.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    rank = whole(info.get("rank"))
    world = whole(info.get("world_size"))
    return rank_in_name(file_name) if rank is None else rank, world


def rank_in_name(file_name: str) -> int | None:
    """The rank that a file name tells, such as ``rank-0``, ``rank_3`` or ``worker0``."""
    for pattern in _IN_FILE_NAME:
        match = pattern.search(file_name)
        if match:
            return int(match.group(1))
    return None


def base_time(header: Mapping[str, Any]) -> int | None:
    """``baseTimeNanoseconds``: Unix time of stamp 0 (torch 2.4 and later)."""
    return whole(header.get("baseTimeNanoseconds"))
