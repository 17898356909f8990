"""What the host did, from an Nsight Systems export: calls, NVTX ranges, libraries, overhead."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace.columns import integers
from workbench.trace.formats.nsight_ids import Identities
from workbench.trace.formats.nvtx import range_of
from workbench.trace.formats.records import Records
from workbench.trace.formats.sqlite import Tables
from workbench.trace.table import Kind, Violation

_MARK = (34,)
_NESTED = (59, 70)
_CROSSING = (60, 71)
"""Start-end ranges may cross one another, so they have a lane of their own beside the thread."""

_NAMED: tuple[tuple[str, Kind, str], ...] = (
    ("PROFILER_OVERHEAD", Kind.OVERHEAD, "overhead"),
    ("OSRT_API", Kind.OTHER, "os_runtime"),
    ("CUDNN_EVENTS", Kind.OTHER, "cudnn"),
    ("CUBLAS_EVENTS", Kind.OTHER, "cublas"),
)
"""Tables of named calls on threads: what their rows are, and the category they get."""


def add_host_tables(records: Records, tables: Tables, ids: Identities) -> None:
    """Add everything that happened on threads."""
    _add_calls(records, tables, ids)
    _add_ranges(records, tables, ids)
    for table, kind, category in _NAMED:
        for rows in tables.select(table, ["start", "end", "globalTid", "nameId"]):
            start, end, thread = (integers(column) for column in rows[:3])
            records.add(
                ts=start,
                dur=end - start,
                name=ids.names(records, rows[3]),
                kind=kind,
                category=category,
                lane=ids.lanes(records, thread),
            )


def _add_calls(records: Records, tables: Tables, ids: Identities) -> None:
    """Calls of the CUDA runtime and driver; the runtime's carry a version that is left out."""
    wanted = ["start", "end", "globalTid", "correlationId", "nameId"]
    for rows in tables.select("CUPTI_ACTIVITY_KIND_RUNTIME", wanted):
        start, end, thread, correlation = (integers(column) for column in rows[:4])
        texts = {number: _call(ids.text(number)) for number in set(rows[4])}
        codes = {number: records.names[text] for number, text in texts.items()}
        runtime = np.array([texts[number].startswith("cuda") for number in rows[4]])
        lane = ids.lanes(records, thread)
        correlation = ids.correlations(correlation, thread)
        name = np.array([codes[number] for number in rows[4]], np.int64)
        for these, kind, category in (
            (runtime, Kind.RUNTIME, "cuda_runtime"),
            (~runtime, Kind.DRIVER, "cuda_driver"),
        ):
            records.add(
                ts=start[these],
                dur=(end - start)[these],
                name=name[these],
                kind=kind,
                category=category,
                lane=lane[these],
                correlation=correlation[these],
            )


def _call(name: str) -> str:
    stem, _, version = name.rpartition("_v")
    return stem if stem.startswith("cuda") and version.isdecimal() else name


def _add_ranges(records: Records, tables: Tables, ids: Identities) -> None:
    wanted = ["start", "end", "globalTid", "eventType", "text", "textId"]
    unclosed = 0
    for rows in tables.select("NVTX_EVENTS", wanted):
        start, end, thread, event = (integers(column) for column in rows[:4])
        texts = [
            str(text)[:4096] if text is not None else ids.text(number)
            for text, number in zip(rows[4], rows[5], strict=True)
        ]
        closed = np.array([value is not None for value in rows[1]])
        for types, suffix in ((_NESTED, ""), (_CROSSING, " start-end ranges")):
            of_type = np.isin(event, types)
            unclosed += int((of_type & ~closed).sum())
            these = np.flatnonzero(of_type & closed)
            lane = ids.lanes(records, thread[these], suffix)
            _add_of_type(records, start[these], end[these], [texts[i] for i in these], lane)
        marks = np.flatnonzero(np.isin(event, _MARK))
        names = np.array([records.names[texts[i]] for i in marks], np.int64)
        lanes = ids.lanes(records, thread[marks])
        for lane_code in np.unique(lanes).tolist():
            here = lanes == lane_code
            records.add_instants(
                ts=start[marks][here], name=names[here], category="nvtx", lane=lane_code
            )
    if unclosed:
        message = f"NVTX ranges that were never closed were left out ({unclosed:,})."
        records.notes.add(Violation(code="unmatched_begin_end", message=message, count=unclosed))


def _add_of_type(
    records: Records,
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    texts: list[str],
    lane: NDArray[Any],
) -> None:
    ranges = [range_of(text) for text in texts]
    records.add(
        ts=start,
        dur=end - start,
        name=np.array([records.names[found.name] for found in ranges], np.int64),
        kind=np.array([found.kind for found in ranges], np.uint8),
        lane=lane,
        sequence=np.array([found.sequence for found in ranges], np.int64),
    )
