"""Reads any trace file into the columnar event table."""

import gzip
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from workbench.errors import TraceError
from workbench.trace.categories import kind_of
from workbench.trace.table import (
    DEVICE_WORK,
    Device,
    Events,
    Flows,
    Kind,
    Lane,
    MemoryEvents,
    Trace,
    Violation,
)

SIZE_LIMIT = 16 * 2**30


def read(source: str | Path | bytes | BinaryIO, *, size_limit: int = SIZE_LIMIT) -> Trace:
    """Read a Kineto or Chrome trace."""
    name, data = _bytes_of(source)
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError) as error:
            raise TraceError(f"{name}: {error}") from None
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            data = archive.read(archive.namelist()[0])
    if len(data) > size_limit:
        raise TraceError(f"{name} is larger than size_limit={size_limit} bytes")
    try:
        document = json.loads(data.decode("utf-8-sig", "replace"), strict=False)
    except ValueError as error:
        raise TraceError(f"{name} is not a JSON trace: {error}") from None
    header = document if isinstance(document, dict) else {}
    events = header.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise TraceError(f"{name} has no traceEvents")
    return _build(name, header, events)


def _bytes_of(source: str | Path | bytes | BinaryIO) -> tuple[str, bytes]:
    if isinstance(source, bytes):
        return "bytes", source
    if isinstance(source, (str, Path)):
        try:
            return Path(source).name, Path(source).read_bytes()
        except OSError as error:
            raise TraceError(f"Cannot read {source}: {error.strerror}") from None
    return Path(str(getattr(source, "name", "stream"))).name, source.read()


class _Codes(dict[Any, int]):
    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]


def _ns(value: Any) -> int:
    text = f"{value:.6f}" if isinstance(value, float) else str(value)
    whole, _, part = text.partition(".")
    return int(whole) * 1000 + round(float("0." + (part or "0")) * 1000)


def _int(args: dict[str, Any], *keys: str) -> int:
    for key in keys:
        try:
            return int(args[key])
        except (KeyError, TypeError, ValueError):
            continue
    return -1


def _build(name: str, header: dict[str, Any], raw: list[Any]) -> Trace:  # noqa: PLR0915
    names, categories, shapes, lanes = _Codes(), _Codes(), _Codes(), _Codes()
    rows: list[tuple[Any, ...]] = []
    flows: list[tuple[Any, ...]] = []
    memory: list[tuple[Any, ...]] = []
    titles: dict[tuple[str, str, str], str] = {}
    stacks: dict[int, list[dict[str, Any]]] = {}
    dropped = 0
    for event in raw:
        if not isinstance(event, dict):
            continue
        phase = event.get("ph")
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        pid, tid = str(event.get("pid", "")), str(event.get("tid", ""))
        if phase == "M":
            titles[(str(event.get("name")), pid, tid)] = str(args.get("name", ""))
            continue
        if phase not in ("X", "B", "E", "s", "t", "f", "i", "I"):
            continue
        try:
            ts = _ns(event.get("ts"))
            dur = _ns(event.get("dur") or 0)
        except (TypeError, ValueError):
            dropped += 1
            continue
        lane = lanes[(pid, tid)]
        if phase == "B":
            stacks.setdefault(lane, []).append(event)
            continue
        if phase == "E":
            if not stacks.get(lane):
                continue
            event = stacks[lane].pop()  # noqa: PLW2901
            args = event.get("args") or {}
            dur, ts = ts - _ns(event.get("ts")), _ns(event.get("ts"))
        category = categories[str(event.get("cat", ""))]
        if phase in "stf":
            flows.append((ts, _int(event, "id"), lane, category, ord(phase)))
            continue
        if phase in "iI":
            if event.get("name") == "[memory]":
                fields = ("Bytes", "Total Allocated", "Total Reserved", "Addr")
                numbers = [_int(args, key) for key in fields]
                where = _int(args, "Device Type"), _int(args, "Device Id")
                memory.append((ts, *numbers, *where, lane))
            continue
        title = str(event.get("name", ""))
        stream = _int(args, "stream", "Stream Id")
        kind = kind_of(str(event.get("cat", "")), title, on_stream=stream >= 0)
        device = _int(args, "device")
        if kind in DEVICE_WORK and device < 0:
            device = 0
        if (ts <= 0 and dur == 0) or dur < 0:
            dropped += 1
            continue
        dims = args.get("Input Dims", args.get("Input dims"))
        rows.append(
            (
                ts, dur, names[title], kind, category, lane, device, stream,
                _int(args, "correlation"), _int(args, "External id", "external id"),
                _int(args, "Sequence number"), _int(args, "Python id"),
                _int(args, "Python parent id"),
                -1 if dims is None else shapes[json.dumps(dims, separators=(",", ":"))],
                _int(args, "bytes", "size"),
            )
        )  # fmt: skip
    rows.sort(key=lambda row: (row[0], -row[1]))
    first = rows[0][0] if rows else 0
    base = header.get("baseTimeNanoseconds")
    absolute = first if first > 10**18 else int(base) + first if base is not None else None

    def column(table: list[tuple[Any, ...]], index: int, dtype: Any) -> Any:
        values = np.array([row[index] for row in table], dtype=np.int64)
        return (values - first if index == 0 else values).astype(dtype)

    columns = list(Events.__dataclass_fields__.values())
    dtypes = [np.int64, np.int64, np.int32, np.uint8, np.int16, np.int32, np.int16, np.int32]
    dtypes += [np.int64] * 5 + [np.int32, np.int64]
    rank_info = header.get("distributedInfo")
    rank_info = rank_info if isinstance(rank_info, dict) else {}
    return Trace(
        source=name,
        events=Events(**{c.name: column(rows, i, dtypes[i]) for i, c in enumerate(columns)}),
        names=tuple(names),
        categories=tuple(categories),
        shapes=tuple(shapes),
        lanes=tuple(
            Lane(
                pid=pid,
                tid=tid,
                process=titles.get(("process_name", pid, tid), titles.get(("process_name", pid, "0"), "")),
                thread=titles.get(("thread_name", pid, tid), ""),
            )
            for pid, tid in lanes
        ),
        flows=Flows(
            ts=column(flows, 0, np.int64),
            id=column(flows, 1, np.int64),
            lane=column(flows, 2, np.int32),
            category=column(flows, 3, np.int16),
            phase=column(flows, 4, np.uint8),
        ),
        memory=MemoryEvents(
            ts=column(memory, 0, np.int64),
            bytes=column(memory, 1, np.int64),
            total_allocated=column(memory, 2, np.int64),
            total_reserved=column(memory, 3, np.int64),
            address=column(memory, 4, np.int64),
            device_type=column(memory, 5, np.int16),
            device_index=column(memory, 6, np.int16),
            lane=column(memory, 7, np.int32),
        ),
        devices=tuple(_devices(header)),
        base_ns=absolute,
        rank=_rank(name, rank_info),
        world_size=rank_info.get("world_size"),
        header={k: v for k, v in header.items() if k != "traceEvents"},
        violations=(Violation(code="zero_timestamps", message="left out", count=dropped),)
        if dropped
        else (),
    )


def _devices(header: dict[str, Any]) -> list[Device]:
    found = []
    for entry in header.get("deviceProperties") or ():
        title = str(entry.get("name", ""))
        kind = "hip" if re.search(r"AMD|Instinct|gfx|Radeon", title) else "cuda"
        memory = entry.get("totalGlobalMem")
        found.append(Device(index=int(entry["id"]), type=kind, name=title, memory_bytes=memory))
    return found


def _rank(name: str, info: dict[str, Any]) -> int | None:
    if "rank" in info:
        return int(info["rank"])
    match = re.search(r"(?:rank|worker)[-_]?(\d+)", name)
    return int(match.group(1)) if match else None
