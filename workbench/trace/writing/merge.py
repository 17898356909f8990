"""Several ranks side by side: unique ids, processes named by rank, one origin of time."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace.table import Lane, Trace
from workbench.trace.writing.devices import described_devices
from workbench.trace.writing.records import processes_of_devices

_IDS = ("correlation", "external_id", "sequence", "python_id", "python_module")
_LARGEST_SHIFTED = 2**40


@dataclass(frozen=True, kw_only=True)
class Merged:
    """Traces that can be written one after another into one file."""

    parts: tuple[tuple[Trace, int], ...]
    """Every trace with the nanoseconds by which its first event is later than the earliest."""
    base_ns: int | None
    """Unix time of the earliest first event, where all traces tell it."""
    header: Mapping[str, Any]
    notes: tuple[str, ...]


def merge(traces: Sequence[Trace]) -> Merged:
    """Make the ids, processes and devices of several traces unique, and place them in time."""
    labels = _labels(traces)
    bases = [trace.base_ns for trace in traces]
    known = [base for base in bases if base is not None]
    aligned = len(known) == len(traces)
    earliest = min(known, default=0)
    one = _OneFile()
    parts, entries = [], []
    for trace, label in zip(traces, labels, strict=True):
        shift = trace.base_ns - earliest if aligned and trace.base_ns is not None else 0
        parts.append((one.take(trace, label), shift))
        entries.append({"name": label, "source": trace.source, "base_ns": trace.base_ns})
    notes = _notes(traces, labels, parts, aligned=aligned)
    header = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "deviceProperties": one.devices,
        "workbench_merged": {"traces": entries, "notes": list(notes)},
    }
    return Merged(
        parts=tuple(parts), base_ns=earliest if aligned else None, header=header, notes=notes
    )


class _OneFile:
    """What is taken already, while one trace after another is added."""

    def __init__(self) -> None:
        self.devices: list[dict[str, Any]] = []
        self._pid = 0
        self._next = dict.fromkeys((*_IDS, "flow"), 0)
        self._used: set[int] = set()

    def take(self, trace: Trace, label: str) -> Trace:
        """The trace with ids that nothing taken before has."""
        events = trace.events
        columns: dict[str, Any] = {}
        for name in _IDS:
            shift = self._shift(name, getattr(events, name))
            columns[name] = _shifted(getattr(events, name), shift)
            if name == "python_id":
                columns["python_parent"] = _shifted(events.python_parent, shift)
            if name == "correlation":
                recorded_by = _shifted(trace.waits.recorded_by, shift)
        devices = self._devices(trace)
        columns["device"] = _mapped(events.device, devices)
        memory = trace.memory
        of_device = np.where(memory.device_type > 0, memory.device_index, -1)
        index = np.where(of_device >= 0, _mapped(of_device, devices), memory.device_index)
        return replace(
            trace,
            events=replace(events, **columns),
            waits=replace(trace.waits, recorded_by=recorded_by),
            flows=replace(trace.flows, id=self._flows(trace)),
            memory=replace(memory, device_index=index.astype(memory.device_index.dtype)),
            lanes=self._lanes(trace, label, devices),
        )

    def _shift(self, name: str, values: NDArray[Any]) -> int:
        """What to add to ids; huge ones stay, they are no running numbers."""
        largest = int(values.max(initial=-1))
        if not 0 <= largest < _LARGEST_SHIFTED:
            return 0
        shift = self._next[name]
        if shift + largest > np.iinfo(values.dtype).max:
            return 0
        self._next[name] = shift + largest + 1
        return shift

    def _flows(self, trace: Trace) -> NDArray[np.int64]:
        numbers, ids = np.unique(trace.flows.id, return_inverse=True)
        shift = self._next["flow"]
        self._next["flow"] += len(numbers)
        return np.asarray(ids.reshape(-1) + shift, np.int64)

    def _devices(self, trace: Trace) -> dict[int, int]:
        listed = {**described_devices(trace), **trace.header}.get("deviceProperties")
        told = {
            entry["id"]: entry
            for entry in (listed if isinstance(listed, list) else [])
            if isinstance(entry, dict) and type(entry.get("id")) is int
        }
        present = sorted({*np.unique(trace.events.device[trace.events.device >= 0]).tolist()})
        found: dict[int, int] = {}
        for device in present:
            free = (n for n in range(1 << 15) if n not in self._used)
            found[device] = next(free) if device in self._used else device
            self._used.add(found[device])
            self.devices.append({**told.get(device, {}), "id": found[device]})
        return found

    def _lanes(self, trace: Trace, label: str, devices: Mapping[int, int]) -> tuple[Lane, ...]:
        """Lanes with process numbers that are new, and names that tell rank and device."""
        pids: dict[str, str] = {}
        of_device = processes_of_devices(trace)
        lanes = []
        for lane in trace.lanes:
            if lane.pid not in pids:
                self._pid += 1
                pids[lane.pid] = str(self._pid)
            device = of_device.get(lane.pid)
            if device is not None:
                name = f"{label} device {devices.get(device, device)}"
            else:
                name = f"{label} {lane.process} {lane.pid}"
            lanes.append(replace(lane, pid=pids[lane.pid], process=" ".join(name.split())))
        return tuple(lanes)


def _shifted(values: NDArray[Any], shift: int) -> NDArray[Any]:
    if not shift:
        return values
    return np.where(values >= 0, values + values.dtype.type(shift), values)


def _mapped(values: NDArray[Any], numbers: Mapping[int, int]) -> NDArray[Any]:
    if all(old == new for old, new in numbers.items()):
        return values
    found = values.copy()
    for old, new in numbers.items():
        found[values == old] = new
    return found


def _labels(traces: Sequence[Trace]) -> list[str]:
    """``rank N`` where every trace tells another rank; else with the number of the file."""
    ranks = [trace.rank for trace in traces]
    if None not in ranks and len(set(ranks)) == len(ranks):
        return [f"rank {rank}" for rank in ranks]
    counts = Counter(ranks)
    return [
        f"rank {rank}" if rank is not None and counts[rank] == 1 else f"trace {number}"
        for number, rank in enumerate(ranks)
    ]


def _notes(
    traces: Sequence[Trace],
    labels: Sequence[str],
    parts: Sequence[tuple[Trace, int]],
    *,
    aligned: bool,
) -> tuple[str, ...]:
    if len(traces) < 2:
        return ()
    if not aligned:
        silent = [label for label, t in zip(labels, traces, strict=True) if t.base_ns is None]
        return (
            f"Clocks are not aligned: no Unix time is told by {', '.join(silent)} (torch before "
            "2.4), so every trace starts at the same moment here.",
        )
    latest = max(shift for _, shift in parts)
    ended = min(shift + int(part.events.end.max(initial=0)) for part, shift in parts)
    if latest > ended:
        gap = json.dumps(round((latest - ended) / 1e9, 3))
        return (
            f"The recordings do not overlap: one ends {gap} s before another begins. They are of "
            "different moments, or the clocks of their hosts differ.",
        )
    return ()
