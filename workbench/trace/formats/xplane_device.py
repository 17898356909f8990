"""The planes of devices in an XLA profile: what is work, on which stream, and of which run."""

import numpy as np
from numpy.typing import NDArray

from workbench.chips import generation
from workbench.trace.formats.content import Bytes
from workbench.trace.formats.records import Records
from workbench.trace.formats.xla_names import (
    Line,
    holding,
    line_of,
    stream_of,
    work_kind,
    work_lines,
)
from workbench.trace.formats.xplane_columns import EventColumns, event_columns, whole
from workbench.trace.formats.xplane_messages import Plane, read_line
from workbench.trace.table import Device, Kind

RUNS = 2**40
"""Correlations from here on are runs of programs; below are those that the profile itself tells."""

_VENDORS = {"amd": "hip", "nvidia": "cuda", "intel": "xpu"}

Runs = dict[tuple[int, int], int]
"""The correlation of each run of a program on a device, by (run id, device)."""


def add_device_plane(
    records: Records, data: Bytes, plane: Plane, device: tuple[str, int], runs: Runs
) -> None:
    """Add the work of one device, and what its other lines say about that work.

    Operations on a TPU name no launch; they belong to the run of the program around them.
    """
    kind, index = device
    records.devices[index] = _described(plane, kind, index)
    lines = [read_line(data, span) for span in plane.lines]
    meanings = [line_of(line.name) for line in lines]
    work = work_lines(set(meanings))
    modules: list[EventColumns] = []
    in_order = sorted(zip(meanings, lines, strict=True), key=lambda pair: -pair[0])
    for meaning, line in in_order:
        events = event_columns(records, data, plane, line)
        if meaning is Line.MODULES:
            modules.append(events)
        kinds = np.full(len(events.ts), Kind.DEVICE_ANNOTATION, np.uint8)
        if meaning in work:
            kinds = _work_kinds(records, events, nested=meaning is Line.OPERATIONS)
        records.add(
            ts=events.ts,
            dur=events.dur,
            name=events.name,
            kind=kinds,
            lane=records.lane(plane.name, f"{line.id} {line.name}", plane.name, line.name),
            device=index,
            stream=stream_of(line.name, line.id & 0x7FFFFFFF),
            correlation=_by_run(events, modules, runs, index)
            if meaning in work
            else events.correlation,
        )


def _described(plane: Plane, kind: str, index: int) -> Device:
    told = plane.stats
    vendor = str(told.get("device_vendor") or "").lower()
    known = (meaning for name, meaning in _VENDORS.items() if name in vendor)
    major, minor = whole(told.get("compute_cap_major")), whole(told.get("compute_cap_minor"))
    memory = whole(told.get("memory_size"))
    device_type = "tpu" if kind == "TPU" else next(known, "cuda")
    name = str(told.get("device_type_string") or told.get("device_name") or "")
    return Device(
        index=index,
        type=device_type,
        name=name,
        arch=generation(device_type, name, major, max(minor, 0)) if major >= 0 else "",
        memory_bytes=memory if memory >= 0 else None,
    )


def _work_kinds(records: Records, events: EventColumns, *, nested: bool) -> NDArray[np.uint8]:
    """Kernel, copy or set by name; an operation that holds another one is an annotation."""
    used, index = np.unique(events.name, return_inverse=True)
    names = records.names.texts
    kinds = np.array([work_kind(names[code]) for code in used.tolist()], np.uint8)[index]
    if nested:
        kinds[holding(events.ts, events.dur)] = Kind.DEVICE_ANNOTATION
    return kinds


def _by_run(
    events: EventColumns, modules: list[EventColumns], runs: Runs, device: int
) -> NDArray[np.int64]:
    """The correlations of work: its own, or that of the program's run around its start."""
    correlation = events.correlation.copy()
    for program in modules:
        order = np.argsort(program.ts, kind="stable")
        if not len(order):
            continue
        code = np.full(len(order), -1, np.int64)
        for position, told in program.told.items():
            run = whole(told.get("run_id"))
            if run >= 0:
                code[position] = runs.setdefault((run, device), RUNS + len(runs))
        start, end = program.ts[order], (program.ts + program.dur)[order]
        holder = np.searchsorted(start, events.ts, "right") - 1
        inside = (holder >= 0) & (events.ts < end[np.maximum(holder, 0)]) & (correlation < 0)
        correlation[inside] = code[order][holder[inside]]
    return correlation
