"""Chrome JSON whose events have no category: the names of processes and threads tell what they are.

XLA (JAX, PyTorch/XLA, TensorFlow) and rocprof 1 and 2 write such files. A lane is taken for work of
a device only where its process is named as a device and its thread as one of its work lines.
Calls are joined to it by ``correlation_id`` (XLA on GPUs) or by arrows (rocprof).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workbench.trace.formats.xla_names import (
    HOST_PLANES,
    Line,
    device_of_plane,
    holding,
    host_kind,
    line_of,
    stream_of,
    work_kind,
    work_lines,
)
from workbench.trace.table import Device, Kind, Trace
from workbench.trace.vendors import vendor

_ROCPROF_GPU = re.compile(r"(?:\d+ )?GPU(\d{1,4})$")
_ROCPROF_COPIES = re.compile(r"(?:\d+ )?COPY$")
_ROCPROF_HOST = re.compile(r"(?:\d+ )?(CPU (HIP|HSA|KFD) API|Markers and Ranges)$")
"""Names of rocprof's processes; a number may stand before them."""
_ROCPROF_ARROWS = "DataFlow"


@dataclass(frozen=True, kw_only=True)
class _Meaning:
    """What the records of one lane are."""

    kind: Callable[[str], Kind]
    device: int = -1
    stream: int = -1
    type: str = ""
    nested: bool = False


def with_lanes_of_devices(trace: Trace) -> Trace:
    """The trace with the kinds that its lanes tell; the same trace where they tell none."""
    meanings = _of_xla(trace) | _of_rocprof(trace)
    uncategorised = trace.events.kind == Kind.OTHER
    if not meanings or not uncategorised.any():
        return trace
    events = trace.events
    kind, device, stream = events.kind.copy(), events.device.copy(), events.stream.copy()
    correlation = events.correlation.copy()
    for lane, meaning in meanings.items():
        rows = np.flatnonzero(uncategorised & (events.lane == lane))
        kind[rows] = _kinds(trace, rows, meaning)
        device[rows], stream[rows] = meaning.device, meaning.stream
    calls = uncategorised & np.isin(kind, (Kind.RUNTIME, Kind.DRIVER))
    _follow_arrows(trace, np.flatnonzero(calls), np.flatnonzero(device >= 0), correlation)
    kind[calls & (correlation < 0)] = Kind.OTHER
    known = {found.index for found in trace.devices}
    types = {m.device: m.type for m in meanings.values() if m.device >= 0}
    found = (Device(index=i, type=types[i]) for i in sorted(types) if i not in known)
    return replace(
        trace,
        events=replace(events, kind=kind, device=device, stream=stream, correlation=correlation),
        devices=(*trace.devices, *found),
    )


def _follow_arrows(
    trace: Trace, calls: NDArray[np.intp], work: NDArray[np.intp], correlation: NDArray[np.int64]
) -> None:
    """Give a call and its work one number where an arrow of rocprof joins them.

    The arrow leaves at the call's start on its thread, or at the work's where that is earlier, and
    meets the work's start in its process, whatever the thread.
    """
    flows, events = trace.flows, trace.events
    named = [i for i, name in enumerate(trace.categories) if name == _ROCPROF_ARROWS]
    arrows = np.isin(flows.category, named)
    process = [lane.pid for lane in trace.lanes]
    call_at: dict[tuple[int, int], int] = {}
    for row in calls.tolist():
        call_at.setdefault((int(events.lane[row]), int(events.ts[row])), row)
    work_at: dict[tuple[str, int], list[int]] = {}
    for row in work.tolist():
        work_at.setdefault((process[events.lane[row]], int(events.ts[row])), []).append(row)
    tails = arrows & (flows.phase == ord("s"))
    tail_of = dict(zip(flows.id[tails].tolist(), np.flatnonzero(tails).tolist(), strict=True))
    for head in np.flatnonzero(arrows & (flows.phase == ord("t"))).tolist():
        tail = tail_of.get(int(flows.id[head]))
        waiting = work_at.get((process[flows.lane[head]], int(flows.ts[head])))
        if tail is None or not waiting:
            continue
        call = call_at.get((int(flows.lane[tail]), int(flows.ts[tail])))
        if call is not None:
            number = int(flows.id[head]) + 1
            correlation[call] = correlation[waiting.pop(0)] = number


def _kinds(trace: Trace, rows: NDArray[np.intp], meaning: _Meaning) -> NDArray[np.uint8]:
    events = trace.events
    used, index = np.unique(events.name[rows], return_inverse=True)
    kinds = np.array([meaning.kind(trace.names[code]) for code in used.tolist()], np.uint8)[index]
    if meaning.nested:
        kinds[holding(events.ts[rows], events.dur[rows])] = Kind.DEVICE_ANNOTATION
    return kinds


def _of_xla(trace: Trace) -> dict[int, _Meaning]:
    found: dict[int, _Meaning] = {}
    lines: dict[str, set[Line]] = {}
    gpu = vendor({}, (), set(), lambda: trace.names)
    for lane in trace.lanes:
        lines.setdefault(lane.process, set()).add(line_of(lane.thread))
    for code, lane in enumerate(trace.lanes):
        device = device_of_plane(lane.process)
        if device is not None:
            line = line_of(lane.thread)
            work = line in work_lines(lines[lane.process])
            found[code] = _Meaning(
                kind=work_kind if work else _annotation,
                device=device[1],
                stream=stream_of(lane.thread, code),
                type="tpu" if device[0] == "TPU" else gpu,
                nested=work and line is Line.OPERATIONS,
            )
        elif lane.process.startswith(HOST_PLANES):
            found[code] = _Meaning(kind=_of_host)
    return found


def _of_rocprof(trace: Trace) -> dict[int, _Meaning]:
    """Rocprof's copies tell no device: they belong to the GPU where there is only one."""
    gpus = {
        code: int(match.group(1))
        for code, lane in enumerate(trace.lanes)
        if (match := _ROCPROF_GPU.match(lane.process))
    }
    if not gpus or not any(_ROCPROF_HOST.match(lane.process) for lane in trace.lanes):
        return {}
    found = {
        code: _Meaning(kind=work_kind, device=gpu, stream=code, type="hip")
        for code, gpu in gpus.items()
    }
    for code, lane in enumerate(trace.lanes):
        if _ROCPROF_COPIES.match(lane.process) and len(set(gpus.values())) == 1:
            only = next(iter(gpus.values()))
            found[code] = _Meaning(kind=_copy, device=only, stream=code, type="hip")
        elif lane.process.endswith("Markers and Ranges"):
            found[code] = _Meaning(kind=_range)
        elif _ROCPROF_HOST.match(lane.process):
            found[code] = _Meaning(kind=_call)
    return found


def _annotation(_: str) -> Kind:
    return Kind.DEVICE_ANNOTATION


def _of_host(name: str) -> Kind:
    return host_kind(name, False)


def _copy(_: str) -> Kind:
    return Kind.MEMCPY


def _range(_: str) -> Kind:
    return Kind.ANNOTATION


def _call(_: str) -> Kind:
    return Kind.RUNTIME
