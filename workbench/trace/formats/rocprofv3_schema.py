"""The records of a rocprofv3 result that are looked at; everything else is passed over.

Numbers and lists are decoded from raw JSON one list at a time, so that one odd record costs itself
and not the file.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

NOTHING = Raw(b"null")


class Handle(Struct):
    """An id of an agent, a queue or a stream."""

    handle: int = -1


class Correlation(Struct):
    """``internal`` is the runtime's, ``external`` the user's."""

    internal: int = -1


class Extent(Struct):
    """A size in three dimensions."""

    x: int = -1
    y: int = -1
    z: int = -1


class DispatchInfo(Struct):
    """What was dispatched, and where."""

    agent_id: Handle = msgspec.field(default_factory=Handle)
    queue_id: Handle = msgspec.field(default_factory=Handle)
    kernel_id: int = -1
    workgroup_size: Extent = msgspec.field(default_factory=Extent)
    grid_size: Extent = msgspec.field(default_factory=Extent)
    group_segment_size: int = -1


class Record(Struct):
    """What every record has: a kind and an operation by number, a thread, and its times."""

    start_timestamp: int
    end_timestamp: int
    kind: int = -1
    operation: int | str = -1
    thread_id: int = -1
    correlation_id: Correlation = msgspec.field(default_factory=Correlation)


class Dispatch(Record):
    """One kernel."""

    dispatch_info: DispatchInfo = msgspec.field(default_factory=DispatchInfo)
    stream_id: Handle = msgspec.field(default_factory=Handle)


class Copy(Record):
    """One copy between agents."""

    src_agent_id: Handle = msgspec.field(default_factory=Handle)
    dst_agent_id: Handle = msgspec.field(default_factory=Handle)
    stream_id: Handle = msgspec.field(default_factory=Handle)
    bytes: int = -1


class Agent(Struct):
    """One CPU (type 1) or GPU (type 2) of the machine."""

    id: Handle = msgspec.field(default_factory=Handle)
    type: int = -1
    name: str = ""
    product_name: str = ""
    logical_node_type_id: int = -1


class KernelSymbol(Struct):
    """The name behind the number of a kernel."""

    kernel_id: int = -1
    formatted_kernel_name: str = ""
    kernel_name: str = ""


class Operations(Struct):
    """The names of the operations of one kind of record."""

    kind: str = ""
    operations: list[Any] = []


class Message(Struct):
    """What a roctx range is called, by the number of its correlation."""

    key: int = -1
    value: str = ""


class Strings(Struct):
    """Names by number."""

    buffer_records: Raw = NOTHING
    marker_api: Raw = NOTHING


class Metadata(Struct):
    """About the process."""

    pid: int = -1


class BufferRecords(Struct):
    """The lists of records."""

    kernel_dispatch: Raw = NOTHING
    memory_copy: Raw = NOTHING
    hip_api: Raw = NOTHING
    hsa_api: Raw = NOTHING
    rccl_api: Raw = NOTHING
    marker_api: Raw = NOTHING


class Process(Struct):
    """What was recorded of one process."""

    metadata: Raw = NOTHING
    agents: Raw = NOTHING
    strings: Raw = NOTHING
    kernel_symbols: Raw = NOTHING
    buffer_records: Raw = NOTHING


class Document(Struct):
    """The whole file; the list of processes, or the one process."""

    tool: Raw = msgspec.field(default=NOTHING, name="rocprofiler-sdk-tool")
