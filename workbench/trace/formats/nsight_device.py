"""What the devices did, from an Nsight Systems export: kernels, copies, sets and waits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace.columns import integers
from workbench.trace.formats.nsight_ids import Identities
from workbench.trace.formats.records import Launched, Records
from workbench.trace.formats.sqlite import Tables
from workbench.trace.table import Device, Kind

_SPAN = ["start", "end", "globalPid", "deviceId", "streamId", "correlationId"]
_KERNEL = ["demangledName", "shortName", "mangledName"]
_LAUNCH = ["gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"]
_SHARED = ["staticSharedMemory", "dynamicSharedMemory"]
_OF_OTHER_PROCESS = 1_000_000
"""Streams of the second process on a device count from here: both have a stream 7."""
_MOST_PROCESSES = 1000

_DIRECTIONS = {
    **{1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD"},
    **{9: "HtoH", 10: "PtoP", 11: "HtoD", 12: "DtoH", 13: "DtoD"},
}
_MEMORY = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device Static"}
_WAITS = {1: "Event Sync", 2: "Stream Sync", 3: "Stream Wait Event", 4: "Context Sync"}
"""Numbers of CUPTI, and how Kineto names what they stand for."""


def add_device_tables(records: Records, tables: Tables, ids: Identities) -> None:
    """Add everything that happened on devices."""
    records.devices.update(ids.devices)
    _add_kernels(records, tables, ids)
    for table, kind, others, name in (
        ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", Kind.KERNEL, ["graphId"], _graph),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", Kind.MEMCPY, ["copyKind", "srcKind", "dstKind"], _copy),
        ("CUPTI_ACTIVITY_KIND_MEMSET", Kind.MEMSET, ["memKind"], _set),
        ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", Kind.SYNC, ["syncType"], _wait),
    ):
        for rows in tables.select(table, [*_SPAN, "bytes", *others]):
            told = list(zip(*rows[7:], strict=True))
            codes = {values: records.names[name(*values)] for values in set(told)}
            names = np.array([codes[values] for values in told], np.int64)
            _add(records, ids, rows[:6], kind=kind, name=names, size=integers(rows[6]))


def _add_kernels(records: Records, tables: Tables, ids: Identities) -> None:
    wanted = [*_SPAN, *_KERNEL, *_LAUNCH, "registersPerThread", *_SHARED]
    for rows in tables.select("CUPTI_ACTIVITY_KIND_KERNEL", wanted):
        chosen = [next((n for n in row if n), None) for row in zip(*rows[6:9], strict=True)]
        extent = [integers(column, np.int32) for column in rows[9:15]]
        static, dynamic = (integers(column, np.int32) for column in rows[16:18])
        launched = Launched(
            grid=np.stack(extent[:3], 1),
            block=np.stack(extent[3:], 1),
            registers=integers(rows[15], np.int32),
            shared_memory=np.where((static < 0) | (dynamic < 0), -1, static + dynamic),
        )
        names = ids.names(records, chosen)
        _add(records, ids, rows[:6], kind=Kind.KERNEL, name=names, launched=launched)


def _add(
    records: Records,
    ids: Identities,
    span: list[list[Any]],
    *,
    kind: Kind,
    name: NDArray[np.int64],
    size: NDArray[np.int64] | int = -1,
    launched: Launched | None = None,
) -> None:
    start, end, process, number, stream, correlation = (integers(column) for column in span)
    device = ids.device_numbers(number, process)
    place = ids.places_on_device(device, process)
    known = (stream >= 0) & (stream < _OF_OTHER_PROCESS) & (place < _MOST_PROCESSES)
    stream = np.where(known, stream + place * _OF_OTHER_PROCESS, -1)
    for index in np.unique(device[device >= 0]).tolist():
        records.devices.setdefault(index, Device(index=index, type="cuda"))
    records.add(
        ts=start,
        dur=end - start,
        name=name,
        kind=kind,
        lane=_lanes(records, device, stream),
        launched=launched,
        device=device,
        stream=stream,
        correlation=ids.correlations(correlation, process),
        bytes=size,
    )


def _lanes(
    records: Records, device: NDArray[np.int64], stream: NDArray[np.int64]
) -> NDArray[np.int64]:
    pairs, index = np.unique(np.stack((device, stream), 1), axis=0, return_inverse=True)
    codes = [
        records.lane(f"GPU {d}", str(s), f"GPU {d}", f"stream {s}" if s >= 0 else "all streams")
        for d, s in pairs.tolist()
    ]
    return np.array(codes, np.int64)[index.reshape(-1)]


def _graph(number: Any) -> str:
    return f"CUDA graph {number}"


def _copy(direction: Any, source: Any, target: Any) -> str:
    ways = [_MEMORY.get(end, "Unknown") for end in (source, target)]
    return f"Memcpy {_DIRECTIONS.get(direction, 'Unknown')} ({ways[0]} -> {ways[1]})"


def _set(memory: Any) -> str:
    return f"Memset ({_MEMORY.get(memory, 'Unknown')})"


def _wait(kind: Any) -> str:
    return _WAITS.get(kind, "Unknown Sync")
