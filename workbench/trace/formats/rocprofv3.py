"""Results of ROCm's ``rocprofv3 --output-format json`` (key ``rocprofiler-sdk-tool``).

Read after the records that ROCprofiler-SDK documents: dispatches and copies on agents, calls of
HIP, HSA and RCCL, and roctx ranges, joined by the correlation that the runtime gives.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw

from workbench.errors import TraceError
from workbench.trace.columns import integers
from workbench.trace.formats.content import MEMORY_LIMIT, Content
from workbench.trace.formats.json_lists import entries, entry, pieces
from workbench.trace.formats.records import Launched, Records
from workbench.trace.formats.rocprofv3_names import Labels, labels_of
from workbench.trace.formats.rocprofv3_schema import (
    BufferRecords,
    Copy,
    Dispatch,
    Document,
    Metadata,
    Process,
    Record,
)
from workbench.trace.formats.xla_names import work_kind
from workbench.trace.table import Kind, Trace

_SIGN = re.compile(rb'\s*\{\s*"rocprofiler-sdk-tool"\s*:')
_CALLS: tuple[tuple[str, Kind, str], ...] = (
    ("hip_api", Kind.RUNTIME, "hip_runtime"),
    ("hsa_api", Kind.DRIVER, "hip_driver"),
    ("rccl_api", Kind.ANNOTATION, "user_annotation"),
    ("marker_api", Kind.ANNOTATION, "user_annotation"),
)
"""Lists of calls, what they are, and the category that Kineto gives such calls."""

_PROCESS_SHIFT = 40


def is_rocprofv3(head: bytes, _: str) -> bool:
    """Whether a file is a result of rocprofv3."""
    return _SIGN.match(head) is not None


def read_rocprofv3(content: Content) -> Trace:
    """Read a result of one or several processes.

    Raises:
        TraceError: It is cut or no JSON; says where.
    """
    processes = _processes(content)
    records = Records(content.name)
    odd = 0
    for number, raw in enumerate(processes):
        process = entry(raw, Process)
        labels = labels_of(process)
        records.devices.update(labels.devices)
        lists = entry(process.buffer_records, BufferRecords)
        pid = str(entry(process.metadata, Metadata).pid)
        odd += _add_dispatches(records, lists.kernel_dispatch, labels, number)
        odd += _add_copies(records, lists.memory_copy, labels, number)
        for name, kind, category in _CALLS:
            found, damaged = entries(getattr(lists, name), Record)
            _add_calls(records, found, labels, number, pid=pid, kind=kind, category=category)
            odd += damaged
    records.left_out(odd, "entries that are no records")
    return records.finish()


def _processes(content: Content) -> list[Any]:
    data = content.whole(limit=MEMORY_LIMIT)
    try:
        tool = msgspec.json.decode(data, type=Document).tool
    except (msgspec.DecodeError, RecursionError) as error:
        raise TraceError(
            f"{content.name} is a damaged or cut rocprofv3 result of {len(data):,} bytes "
            f"({error}). Record again with `rocprofv3 --output-format json`."
        ) from None
    return pieces(tool) if bytes(memoryview(tool)[:1]) == b"[" else [tool]


def _add_dispatches(records: Records, raw: Raw, labels: Labels, number: int) -> int:
    found, odd = entries(raw, Dispatch)
    told = [record.dispatch_info for record in found]
    texts = [labels.kernel(info.kernel_id) for info in told]
    extent = [
        integers([getattr(getattr(info, size), axis) for info in told], np.int32)
        for size in ("grid_size", "workgroup_size")
        for axis in "xyz"
    ]
    launched = Launched(
        grid=_groups(extent[:3], extent[3:]),
        block=np.stack(extent[3:], 1),
        registers=np.full(len(told), -1, np.int64),
        shared_memory=integers([info.group_segment_size for info in told], np.int32),
    )
    _add_work(
        records,
        found,
        labels,
        number,
        texts=texts,
        agents=[info.agent_id.handle for info in told],
        streams=[info.queue_id.handle for info in told],
        launched=launched,
    )
    return odd


def _groups(items: list[Any], block: list[Any]) -> Any:
    """Numbers of workgroups: ROCm's grid counts work items."""
    grid, size = np.stack(items, 1), np.stack(block, 1)
    return np.where((grid > 0) & (size > 0), -(-grid // np.maximum(size, 1)), grid)


def _add_copies(records: Records, raw: Raw, labels: Labels, number: int) -> int:
    found, odd = entries(raw, Copy)
    ends = [(record.src_agent_id.handle, record.dst_agent_id.handle) for record in found]
    _add_work(
        records,
        found,
        labels,
        number,
        texts=[labels.copy(record.kind, record.operation) for record in found],
        agents=[target if target in labels.numbers else source for source, target in ends],
        streams=[record.stream_id.handle for record in found],
        size=integers([record.bytes for record in found]),
    )
    return odd


def _add_work(
    records: Records,
    found: Sequence[Dispatch | Copy],
    labels: Labels,
    number: int,
    *,
    texts: list[str],
    agents: list[int],
    streams: list[int],
    launched: Launched | None = None,
    size: Any = -1,
) -> None:
    device = [labels.numbers.get(agent, -1) for agent in agents]
    lanes = [_lane(records, d, stream, number) for d, stream in zip(device, streams, strict=True)]
    start, dur, correlation = _times(found, number)
    records.add(
        ts=start,
        dur=dur,
        name=[records.names[text] for text in texts],
        kind=[work_kind(text) for text in texts],
        lane=lanes,
        device=device,
        stream=lanes,
        correlation=correlation,
        bytes=size,
        launched=launched,
    )


def _lane(records: Records, device: int, stream: int, number: int) -> int:
    """The lane of a queue, which stands for the stream: handles are addresses."""
    process = f"GPU {device}" if device >= 0 else "GPU unknown"
    thread = f"queue {stream}" if stream >= 0 else "copies"
    return records.lane(process, f"{number} {thread}", process, thread)


def _add_calls(
    records: Records,
    found: list[Record],
    labels: Labels,
    number: int,
    *,
    pid: str,
    kind: Kind,
    category: str,
) -> None:
    start, dur, correlation = _times(found, number)
    texts = [labels.call(call.kind, call.operation, call.correlation_id.internal) for call in found]
    records.add(
        ts=start,
        dur=dur,
        name=[records.names[text] for text in texts],
        kind=kind,
        category=category,
        lane=[records.lane(pid, str(call.thread_id)) for call in found],
        correlation=correlation if kind is not Kind.ANNOTATION else -1,
    )


def _times(found: Sequence[Record], number: int) -> tuple[Any, Any, Any]:
    """Starts, durations and correlations; the latter count anew in every process."""
    start = integers([record.start_timestamp for record in found])
    end = integers([record.end_timestamp for record in found])
    told = integers([record.correlation_id.internal for record in found])
    known = (told > 0) & (told < 2**_PROCESS_SHIFT)
    correlation = np.where(known, told + (number << _PROCESS_SHIFT), -1)
    return start, end - start, correlation
