"""What is known about a collective: from its kernel, the host's record, the range, or the name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.collective_names import (
    BACKEND_RANGE,
    DTYPE_BYTES,
    RECORD,
    Split,
    collective_kind,
    full_buffer,
    split_of,
)
from workbench.analysis.operator_shapes import decoded
from workbench.trace.table import Collective, Kind, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workbench.analysis.launches import Launches


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a collective."""

    kind: str
    """all_reduce, all_gather, reduce_scatter, all_to_all, …; ``send_recv`` or ``other`` if only a
    kernel's name tells it."""
    split: Split
    shown_kind: str
    """What the kernel's (or range's) own name says, the same on every rank."""
    group: str = ""
    """Name of the process group."""
    ranks: str = ""
    """Its ranks, as the trace writes them."""
    group_size: int | None = None
    dtype: str = ""
    bytes: int | None = None
    """Bytes of the full buffer for all-gather and reduce-scatter, of one rank's otherwise."""
    sequence: int | None = None
    stream: int = -1


class Records:
    """The host's records of collectives, by the launch that lies inside them."""

    def __init__(self, trace: Trace, launches: Launches) -> None:
        self._trace = trace
        self._launches = launches
        self._told = {told.row: told for told in trace.collectives}
        events = trace.events
        here = events.of_kind(Kind.OPERATOR, Kind.ANNOTATION, Kind.OTHER)
        records = trace.name_codes(lambda name: name == RECORD)
        ranges = trace.name_codes(lambda name: bool(BACKEND_RANGE.match(name)))
        self._records = _by_lane(trace, np.flatnonzero(here & np.isin(events.name, records)))
        self._ranges = _by_lane(trace, np.flatnonzero(here & np.isin(events.name, ranges)))
        self._only = _only_group(trace)

    def calls(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], tuple[Call, ...]]:
        """The calls behind rows in time order, and each row's call; rows of one call are one."""
        owner = np.empty(len(rows), np.int64)
        made: list[Call] = []
        known: dict[tuple[int, int], int] = {}
        for position, row in enumerate(rows.tolist()):
            record, around = self._host(row)
            inner = around if around >= 0 else record
            key = (inner, int(self._trace.events.device[row]))
            if inner < 0 or key not in known:
                known[key] = len(made)
                made.append(self._call(row, record, around))
            owner[position] = known[key]
        return owner, tuple(_inherit(made))

    def _host(self, row: int) -> tuple[int, int]:
        """Rows of the record and of the range around the launch of a kernel, or -1."""
        launch = int(self._launches.launch[row])
        if launch < 0:
            return (-1, -1)
        return self._around(launch, self._records), self._around(launch, self._ranges)

    def _around(self, launch: int, by_lane: dict[int, NDArray[np.intp]]) -> int:
        events = self._trace.events
        rows = by_lane.get(int(events.lane[launch]))
        if rows is None:
            return -1
        at = int(np.searchsorted(events.ts[rows], events.ts[launch], "right")) - 1
        if at < 0:
            return -1
        found = int(rows[at])
        return found if events.ts[found] + events.dur[found] >= events.ts[launch] else -1

    def _call(self, row: int, record: int, around: int) -> Call:
        trace = self._trace
        own = trace.names[trace.events.name[row]]
        told = self._told.get(row) or self._told.get(record) or self._told.get(around)
        shown = collective_kind(own)
        stream = int(trace.events.stream[row])
        if told is not None:
            return _from_record(told, shown, stream)
        source = around if around >= 0 else row
        name = trace.names[trace.events.name[source]]
        kind = collective_kind(name)
        kind = shown if kind == "other" else kind
        group, size = self._only
        elements, dtype = self._input(source)
        whole = full_buffer(kind, elements, size)
        width = DTYPE_BYTES.get(dtype.lower())
        return Call(
            kind=kind,
            split=split_of(kind, told=False),
            shown_kind=shown,
            group=group,
            group_size=size,
            dtype=dtype,
            bytes=None if whole is None or width is None else whole * width,
            stream=stream,
        )

    def _input(self, row: int) -> tuple[int | None, str]:
        """Elements and type of the input tensors that a range tells."""
        trace = self._trace
        shape, kind = int(trace.events.shapes[row]), int(trace.events.types[row])
        if shape < 0 or kind < 0:
            return None, ""
        return _elements(trace.shapes[shape], trace.types[kind])


@lru_cache(maxsize=4096)
def _elements(shapes: str, types: str) -> tuple[int | None, str]:
    dims, names = decoded(shapes), decoded(types)
    tensors = [
        (prod(each), str(name))
        for each, name in zip(dims, names, strict=False)
        if isinstance(each, list)
        and all(isinstance(n, int) for n in each)
        and str(name).lower() in DTYPE_BYTES
    ]
    types_found = {name for _, name in tensors}
    if len(types_found) != 1:
        return None, ""
    return sum(count for count, _ in tensors), types_found.pop()


def _from_record(told: Collective, shown: str, stream: int) -> Call:
    kind = collective_kind(told.name)
    kind = shown if kind == "other" else kind
    elements = [n for n in (told.in_elements, told.out_elements) if n is not None]
    if kind in ("all_gather", "reduce_scatter"):
        count = max(elements, default=None)
    else:
        count = elements[0] if elements else None
    width = DTYPE_BYTES.get(told.dtype.lower())
    return Call(
        kind=kind,
        split=split_of(kind, told=True),
        shown_kind=shown,
        group=told.group,
        ranks=told.ranks,
        group_size=told.group_size,
        dtype=told.dtype,
        bytes=None if count is None or width is None else count * width,
        sequence=told.sequence,
        stream=stream,
    )


def _by_lane(trace: Trace, rows: NDArray[np.intp]) -> dict[int, NDArray[np.intp]]:
    lanes = trace.events.lane[rows]
    return {int(lane): rows[lanes == lane] for lane in np.unique(lanes)}


def _only_group(trace: Trace) -> tuple[str, int | None]:
    """Name and size of the process group when the header lists exactly one."""
    info = trace.header.get("distributedInfo")
    groups = info.get("pg_config") if isinstance(info, dict) else None
    if not isinstance(groups, list) or len(groups) != 1 or not isinstance(groups[0], dict):
        return "", None
    size = groups[0].get("pg_size")
    return str(groups[0].get("pg_name", "")), size if isinstance(size, int) and size > 0 else None


def _inherit(calls: list[Call]) -> list[Call]:
    """A call that names no group is of its stream's: a communicator keeps to one stream."""
    groups: dict[int, set[tuple[str, str, int | None]]] = {}
    for call in calls:
        if call.group:
            groups.setdefault(call.stream, set()).add((call.group, call.ranks, call.group_size))
    sure = {stream: found.pop() for stream, found in groups.items() if len(found) == 1}
    return [
        call
        if call.group or call.stream not in sure
        else replace(
            call,
            group=sure[call.stream][0],
            ranks=sure[call.stream][1],
            group_size=sure[call.stream][2],
        )
        for call in calls
    ]
