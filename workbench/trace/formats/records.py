"""Collects the rows of a trace of any format, and makes the one event table of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import TraceError
from workbench.trace.clean_times import keep_possible
from workbench.trace.columns import Column
from workbench.trace.header import rank_in_name
from workbench.trace.notes import Notes
from workbench.trace.stamps import INVALID
from workbench.trace.table import (
    Device,
    Events,
    Flows,
    Instants,
    Kind,
    Lane,
    LaunchConfigurations,
    MemoryEvents,
    Trace,
    Violation,
)

EVENT_LIMIT = 200_000_000
"""Most rows of one file; the table of so many takes some ten gigabytes."""

CATEGORIES: Mapping[Kind, str] = {
    Kind.OTHER: "other",
    Kind.OPERATOR: "cpu_op",
    Kind.ANNOTATION: "user_annotation",
    Kind.RUNTIME: "runtime",
    Kind.DRIVER: "cuda_driver",
    Kind.PYTHON: "python_function",
    Kind.KERNEL: "kernel",
    Kind.MEMCPY: "gpu_memcpy",
    Kind.MEMSET: "gpu_memset",
    Kind.DEVICE_ANNOTATION: "gpu_user_annotation",
    Kind.SYNC: "cuda_sync",
    Kind.OVERHEAD: "overhead",
    Kind.PROFILER: "Trace",
}
"""Kineto's name for each kind: what other formats give no category of their own."""

EPOCH_NS = 10**18
"""Stamps behind September 2001 are Unix time."""
_LARGEST_STAMP = 2**62
_COLUMNS: Mapping[str, Any] = {
    **dict.fromkeys(("ts", "dur", "correlation", "external_id", "sequence"), np.int64),
    **dict.fromkeys(("python_id", "python_parent", "bytes"), np.int64),
    **dict.fromkeys(("name", "lane", "stream", "shapes"), np.int32),
    **{"kind": np.uint8, "category": np.int16, "device": np.int16},
}
_NOTHING = (
    "It holds no events. The profiler was never active, or what it recorded is none of what is "
    "read: see docs/formats.md."
)


@dataclass(frozen=True, kw_only=True)
class Launched:
    """How kernels were launched, as arrays beside the rows that ``Records.add`` was given."""

    grid: NDArray[np.int64]
    """Three numbers a kernel."""
    block: NDArray[np.int64]
    registers: NDArray[np.int64]
    shared_memory: NDArray[np.int64]


class Names(dict[str, int]):
    """Gives every new name the next number; ``texts`` are the names by number."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def __missing__(self, text: str) -> int:
        code = self[text] = len(self.texts)
        self.texts.append(text)
        return code


class Records:
    """Growing columns of durations and instants; names and lanes are coded as they come."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.notes = Notes(source)
        self.names = Names()
        self.categories = Names()
        self.devices: dict[int, Device] = {}
        self._lanes: dict[tuple[str, str], int] = {}
        self._described: list[Lane] = []
        self._columns = {name: Column(dtype) for name, dtype in _COLUMNS.items()}
        self._columns["kind"] = Column(np.uint8, Kind.OTHER)
        self._instants = {"ts": Column(np.int64), "name": Column(np.int32)}
        self._instants |= {"category": Column(np.int16), "lane": Column(np.int32)}
        self._launched: list[tuple[int, Launched]] = []

    def __len__(self) -> int:
        return len(self._columns["ts"])

    def lane(self, pid: str, tid: str, process: str = "", thread: str = "") -> int:
        """The code of a lane; the first description of it stays."""
        code = self._lanes.setdefault((pid, tid), len(self._described))
        if code == len(self._described):
            self._described.append(Lane(pid=pid, tid=tid, process=process, thread=thread))
        return code

    def add(
        self,
        *,
        ts: Sequence[int] | NDArray[np.int64],
        dur: Sequence[int] | NDArray[np.int64],
        name: ArrayLike,
        kind: ArrayLike,
        lane: ArrayLike,
        category: str | None = None,
        launched: Launched | None = None,
        **others: ArrayLike,
    ) -> None:
        """Append durations; every column is one value for all or one for each.

        Times are nanoseconds, names are codes of ``names``. A category that is not given is the
        one that Kineto writes for the kind. ``others`` are columns of ``Events``.
        """
        count = len(ts)
        if not count:
            return
        start = len(self)
        if start + count > EVENT_LIMIT:
            raise TraceError(
                f"{self.source} has more than {EVENT_LIMIT:,} events: record fewer steps."
            )
        self._columns["ts"].extend(stamps(ts))
        rows = np.arange(start, start + count)
        others |= {"dur": stamps(dur), "name": name, "kind": kind, "lane": lane}
        others["category"] = (
            self._categories(kind) if category is None else self.categories[category]
        )
        for key, value in others.items():
            column = self._columns[key]
            column.put(rows, np.broadcast_to(np.asarray(value, column.dtype), count))
        if launched is not None:
            self._launched.append((start, launched))

    def _categories(self, kind: ArrayLike) -> NDArray[np.int16]:
        found, index = np.unique(np.asarray(kind, np.uint8), return_inverse=True)
        codes = [self.categories[CATEGORIES[Kind(number)]] for number in found.tolist()]
        return np.array(codes, np.int16)[index].reshape(np.shape(kind))

    def add_instants(
        self, *, ts: Sequence[int] | NDArray[np.int64], name: ArrayLike, category: str, lane: int
    ) -> None:
        """Append moments without a length."""
        count = len(ts)
        self._instants["ts"].extend(stamps(ts))
        self._instants["name"].extend(np.broadcast_to(np.asarray(name, np.int32), count))
        code = np.int16(self.categories[category])
        self._instants["category"].extend(np.broadcast_to(code, count))
        self._instants["lane"].extend(np.broadcast_to(np.int32(lane), count))

    def peek(self, column: str) -> NDArray[Any]:
        """A column so far."""
        found = self._columns[column]
        return found.tail(np.arange(len(self)))

    def left_out(self, count: int, why: str) -> None:
        """Tell that records were left out."""
        if count:
            message = f"Damaged records were left out ({count:,}): {why}."
            share = count / (count + len(self))
            self.notes.add(
                Violation(code="unreadable_records", message=message, count=count, share=share)
            )

    def finish(
        self, *, base_ns: int | None = None, header: Mapping[str, Any] | None = None
    ) -> Trace:
        """The table.

        ``base_ns`` is the Unix time of stamp 0; stamps that are Unix time need none.
        """
        rows = len(self)
        columns = {name: column.take(rows) for name, column in self._columns.items()}
        ts, dur, kind = columns["ts"], columns["dur"], columns["kind"]
        keep = keep_possible(ts, dur, np.empty(0, np.int64), kind, self.notes)
        order = np.arange(rows) if keep is None else np.flatnonzero(keep)
        order = order[np.lexsort((-dur[order], ts[order]))]
        instants = {name: column.take() for name, column in self._instants.items()}
        known = instants["ts"] != INVALID
        instants = {name: values[known] for name, values in instants.items()}
        if not len(order) and not known.any():
            self.notes.add(Violation(code="no_events", message=_NOTHING))
        first = _first(ts[order], instants["ts"])
        columns = {name: _taken(values, order) for name, values in columns.items()}
        position = np.full(rows, -1)
        position[order] = np.arange(len(order))
        absolute = first > EPOCH_NS
        return Trace(
            source=self.source,
            events=Events(**columns | {"ts": columns["ts"] - first}),
            names=tuple(self.names.texts),
            categories=tuple(self.categories.texts),
            shapes=(),
            lanes=tuple(self._described),
            flows=_no_flows(),
            memory=_no_memory(),
            instants=Instants(**instants | {"ts": instants["ts"] - first}),
            devices=tuple(self.devices[index] for index in sorted(self.devices)),
            base_ns=first if absolute else None if base_ns is None else base_ns + first,
            rank=rank_in_name(self.source),
            launch_configurations=self._configurations(position),
            violations=self.notes.violations(rows),
        )

    def _configurations(self, position: NDArray[np.int64]) -> LaunchConfigurations:
        if not self._launched:
            return LaunchConfigurations()
        row = [position[start : start + len(told.registers)] for start, told in self._launched]
        rows = np.concatenate(row)
        order = np.argsort(rows, kind="stable")
        order = order[rows[order] >= 0]
        told = [one for _, one in self._launched]
        return LaunchConfigurations(
            row=rows[order],
            grid=np.concatenate([one.grid for one in told])[order].astype(np.int32),
            block=np.concatenate([one.block for one in told])[order].astype(np.int32),
            registers=np.concatenate([one.registers for one in told])[order].astype(np.int32),
            shared_memory=np.concatenate([one.shared_memory for one in told])[order].astype(
                np.int32
            ),
        )


def stamps(values: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Nanoseconds as int64; what no clock can have said becomes *no stamp*."""
    try:
        found = np.asarray(values, np.int64)
    except (OverflowError, ValueError, TypeError):
        found = np.array([_stamp(value) for value in values], np.int64)
    return np.where(np.abs(found) < _LARGEST_STAMP, found, INVALID)


def _stamp(value: Any) -> int:
    return value if isinstance(value, int) and abs(value) < _LARGEST_STAMP else INVALID


def _first(ts: NDArray[np.int64], instants: NDArray[np.int64]) -> int:
    if len(ts):
        return int(ts[0])
    return int(instants.min()) if len(instants) else 0


def _taken(values: NDArray[Any], order: NDArray[np.intp]) -> NDArray[Any]:
    constant = values.strides == (0,)
    return np.broadcast_to(values[:1], len(order)) if constant and len(values) else values[order]


def _no_flows() -> Flows:
    return Flows(
        ts=np.empty(0, np.int64),
        id=np.empty(0, np.int64),
        lane=np.empty(0, np.int32),
        category=np.empty(0, np.int16),
        phase=np.empty(0, np.uint8),
    )


def _no_memory() -> MemoryEvents:
    wide = dict.fromkeys(("ts", "bytes", "total_allocated", "total_reserved", "address"))
    return MemoryEvents(
        **{name: np.empty(0, np.int64) for name in wide},
        device_type=np.empty(0, np.int16),
        device_index=np.empty(0, np.int16),
        lane=np.empty(0, np.int32),
    )
