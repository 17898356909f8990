"""The lane file: a CSV that anybody can write for any accelerator.

A header names the columns: ``lane, kind, name, start, duration`` and, where known, ``correlation``
and ``bytes``. ``start`` and ``duration`` are microseconds, or what a suffix says: ``start_ns``,
``start_us``, ``start_ms``, ``start_s``. ``kind`` is one of the kinds of the event table in lower
case (docs/formats.md). A lane is ``thread`` or ``process/thread``; for work of a device it is
``device/stream``, and lanes with the same text before the slash are streams of one device. Cells
are only text: a formula in one is a name like any other. Lines that begin with ``#`` are passed
over.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from workbench.errors import TraceError
from workbench.trace.formats.content import Content
from workbench.trace.formats.lane_cells import LaneError, Times, cell, number, times_of
from workbench.trace.formats.lane_lines import Lines, delimiter_of, header_line
from workbench.trace.formats.records import Records
from workbench.trace.table import DEVICE_WORK, Device, Kind, Trace

_NEEDED = ("lane", "kind", "name")
_NUMBERS = ("correlation", "bytes")
_KINDS = {kind.name.lower(): kind for kind in Kind}
_ON_DEVICE = (*DEVICE_WORK, Kind.DEVICE_ANNOTATION, Kind.SYNC)
_BATCH = 1 << 15
_MOST_DEVICES = 2**15
_TYPES: tuple[tuple[str, str], ...] = (
    (r"fpga|alveo|versal|zcu|pynq|agilex|stratix", "fpga"),
    (r"cuda|nvidia|geforce|\bgpu", "cuda"),
    (r"hip|rocm|amd", "hip"),
    (r"\b(tpu|npu|hpu|xpu|mlu|mtia)", ""),
)
"""How a device's lane is called, and the type of the device; empty for the word itself."""


@dataclass(kw_only=True)
class _Batch:
    """Rows that wait to be added together."""

    ts: list[int] = field(default_factory=list)
    dur: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    kind: list[Kind] = field(default_factory=list)
    lane: list[int] = field(default_factory=list)
    device: list[int] = field(default_factory=list)
    stream: list[int] = field(default_factory=list)
    correlation: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)


def is_lane_file(head: bytes, _: str) -> bool:
    """Whether a file is CSV with the columns lane, kind and name."""
    return set(_NEEDED) <= set(_header_in(head))


def read_lane_file(content: Content) -> Trace:
    """Read a lane file.

    Raises:
        TraceError: A line is not as it should be; says which, and what was found.
    """
    records, lines = Records(content.name), Lines(content.pieces())
    try:
        rows = csv.reader(lines, delimiter=delimiter_of(content.head), strict=True)
        _read(records, rows, lines)
    except (csv.Error, LaneError) as error:
        raise TraceError(
            f"{content.name} is no lane file that can be read: line {lines.number:,}: {error}. "
            "What each column may hold stands in docs/formats.md."
        ) from None
    return records.finish()


def _header_in(head: bytes) -> list[str]:
    try:
        row = next(csv.reader([header_line(head)], delimiter=delimiter_of(head)), [])
    except csv.Error:
        return []
    return [name.strip().lower() for name in row]


def _read(records: Records, rows: Iterator[list[str]], lines: Lines) -> None:
    first = next((row for row in rows if any(row)), [])
    header = [name.strip().lower() for name in first]
    position = {name: index for index, name in enumerate(header)}
    if len(position) < len(header):
        raise LaneError("two columns have the same name")
    if not set(_NEEDED) <= set(position):
        raise LaneError(f"there must be the columns {', '.join(_NEEDED)}")
    times = times_of(position)
    devices: dict[str, int] = {}
    batch = _Batch()
    for row in rows:
        if any(value.strip() for value in row):
            if len(row) != len(header):
                raise LaneError(f"it has {len(row)} cells, the header has {len(header)}")
            _take(records, batch, row, position=position, times=times, devices=devices)
        if len(batch.ts) >= _BATCH:
            records.add(**vars(batch))
            batch = _Batch()
    records.add(**vars(batch))


def _take(
    records: Records,
    batch: _Batch,
    row: Sequence[str],
    *,
    position: dict[str, int],
    times: Times,
    devices: dict[str, int],
) -> None:
    lane, word, name = (row[position[key]] for key in _NEEDED)
    kind = _KINDS.get(word.strip().lower())
    if kind is None:
        raise LaneError(f"there is no kind {cell(word)}; kinds are {', '.join(_KINDS)}")
    if not lane.strip():
        raise LaneError("the lane has no name")
    process, slash, thread = lane.strip().partition("/")
    device = -1
    if kind in _ON_DEVICE:
        device = _device(records, process, devices)
    elif not slash:
        process, thread = "host", process
    code = records.lane(process, thread or process, process, thread or process)
    start, duration = times.read(row)
    batch.ts.append(start)
    batch.dur.append(duration)
    batch.name.append(records.names[name.strip()[:4096]])
    batch.kind.append(kind)
    batch.lane.append(code)
    batch.device.append(device)
    batch.stream.append(code if device >= 0 else -1)
    for key, column in zip(_NUMBERS, (batch.correlation, batch.bytes), strict=True):
        column.append(number(row[position[key]], key) if key in position else -1)


def _device(records: Records, name: str, devices: dict[str, int]) -> int:
    index = devices.setdefault(name, len(devices))
    if index not in records.devices:
        if index >= _MOST_DEVICES:
            raise LaneError(f"there are more than {_MOST_DEVICES:,} devices")
        records.devices[index] = Device(index=index, type=_type(name), name=name)
    return index


def _type(name: str) -> str:
    for pattern, kind in _TYPES:
        match = re.search(pattern, name, re.I)
        if match:
            return kind or match.group(1).lower()
    return "other"
