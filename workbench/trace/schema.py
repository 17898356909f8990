"""The events of the Chrome trace format, as msgspec decodes them: one struct per phase.

The families differ in how they take time stamps. ``FAST`` takes numbers as doubles; stamps that a
double would round are whole numbers in ``WHOLE``, and keep their text in ``EXACT``. ``USUAL`` is
``FAST`` for files with no other categories than torch's own, of which no text has to be made.

``args`` of durations stay text at first. They are parsed in a second step, all of one group of
categories together, into a struct that has only what such records carry: that halves the time.
"""

import re
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct, field

from workbench.trace import categories

NAN = float("nan")
NOTHING = Raw(b"")


class Arguments(Struct, gc=False, frozen=True):
    """What every record of a duration may carry; entries that are no field are skipped."""

    external_id: int = field(default=-1, name="External id")


class PythonArguments(Struct, gc=False, frozen=True):
    """A Python stack record."""

    python_parent: int | None = field(default=-1, name="Python parent id")
    python_id: int = field(default=-1, name="Python id")
    python_module: int = field(default=-1, name="Python module id")


class HostArguments(Arguments, gc=False, frozen=True):
    """An operator or a range on the host."""

    sequence: int = field(default=-1, name="Sequence number")
    forward_thread: int = field(default=-1, name="Fwd thread id")
    types: Raw = field(default=NOTHING, name="Input type")
    strides: Raw = field(default=NOTHING, name="Input Strides")
    values: Raw = field(default=NOTHING, name="Concrete Inputs")
    shapes: Raw = field(default=NOTHING, name="Input Dims")
    stack: Any = field(default=None, name="Call stack")
    collective: Any = field(default=None, name="Collective name")


class CallArguments(Arguments, gc=False, frozen=True):
    """A call into a runtime or a driver."""

    correlation: int = -1
    bytes: int = -1


class DeviceArguments(Arguments, gc=False, frozen=True):
    """Work on a device, or an annotation or synchronization there."""

    queued: int = -1
    device: int = -1
    stream: int = -1
    correlation: int = -1
    registers: int = field(default=-1, name="registers per thread")
    shared_memory: int = field(default=-1, name="shared memory")
    blocks_per_sm: float = field(default=NAN, name="blocks per SM")
    warps_per_sm: float = field(default=NAN, name="warps per SM")
    grid: Raw = NOTHING
    block: Raw = NOTHING
    occupancy: float = field(default=NAN, name="est. achieved occupancy %")
    graph: int = field(default=-1, name="graph id")
    graph_node: int = field(default=-1, name="graph node id")
    bytes: int = -1
    bandwidth: float = field(default=NAN, name="memory bandwidth (GB/s)")
    wait_stream: int = field(default=-1, name="wait_on_stream")
    wait_recorded_by: int = field(default=-1, name="wait_on_cuda_event_record_corr_id")
    wait_event: int = field(default=-1, name="wait_on_cuda_event_id")
    collective: Any = field(default=None, name="Collective name")


class AnyArguments(DeviceArguments, gc=False, frozen=True):
    """A record of an unknown category, or of torch before 1.12: every entry in every spelling."""

    external_id_old: int = field(default=-1, name="external id")
    connection: int = field(default=-1, name="connection_id")
    correlation_xla: int = field(default=-1, name="correlation_id")
    size: int = -1
    stream_npu: int = field(default=-1, name="Stream Id")
    sequence: int = field(default=-1, name="Sequence number")
    forward_thread: int = field(default=-1, name="Fwd thread id")
    python_id: int = field(default=-1, name="Python id")
    python_parent: int | None = field(default=-1, name="Python parent id")
    python_module: int = field(default=-1, name="Python module id")
    shapes: Raw = field(default=NOTHING, name="Input Dims")
    shapes_old: Raw = field(default=NOTHING, name="Input dims")
    types: Raw = field(default=NOTHING, name="Input type")
    strides: Raw = field(default=NOTHING, name="Input Strides")
    values: Raw = field(default=NOTHING, name="Concrete Inputs")
    stack: Any = field(default=None, name="Call stack")


class CollectiveArguments(Struct, gc=False, frozen=True):
    """The entries of a communication record, of any JSON type."""

    name: Any = field(default=None, name="Collective name")
    group: Any = field(default=None, name="Process Group Name")
    description: Any = field(default=None, name="Process Group Description")
    group_size: Any = field(default=None, name="Group size")
    ranks: Any = field(default=None, name="Process Group Ranks")
    dtype: Any = None
    in_elements: Any = field(default=None, name="In msg nelems")
    out_elements: Any = field(default=None, name="Out msg nelems")
    sequence: Any = field(default=None, name="Seq")
    rank: Any = field(default=None, name="Rank")
    source: Any = field(default=None, name="Src Rank")
    destination: Any = field(default=None, name="Dst Rank")
    group_id: Any = field(default=None, name="Process Group ID")
    in_split: Any = field(default=None, name="In split size")
    out_split: Any = field(default=None, name="Out split size")
    rank_start: Any = field(default=None, name="Global rank start")
    rank_stride: Any = field(default=None, name="Global rank stride")
    communicator: Any = field(default=None, name="Comms Id")
    asynchronous: Any = field(default=None, name="Is asynchronized op")


class MemoryArguments(Struct, gc=False, frozen=True):
    """The entries of a ``[memory]`` instant."""

    bytes: int = field(default=0, name="Bytes")
    total_allocated: int = field(default=-1, name="Total Allocated")
    total_reserved: int = field(default=-1, name="Total Reserved")
    address: int = field(default=-1, name="Addr")
    device_type: int = field(default=-1, name="Device Type")
    device_index: int = field(default=-1, name="Device Id")


class LabelArguments(Struct, gc=False, frozen=True):
    """The entries of a metadata event: the name of a process or a thread."""

    name: Any = None
    labels: Any = None


NO_ARGUMENTS = Raw(b"{}")
NO_MEMORY = MemoryArguments()
NO_LABELS = LabelArguments()

DURATIONS = ("X", "B")
FLOWS = ("s", "t", "f")
INSTANTS = ("i", "I", "R")
UNREAD = ("b", "n", "e", "S", "T", "p", "F", "P", "N", "O", "D", "V", "v", "c", "(", ")")
"""Phases of the format (async, sample, object, memory dump, mark) that hold nothing we use."""

_PLACE = [("pid", int | str, ""), ("tid", int | str, "")]


class Family:
    """The structs of all phases for one way of taking stamps, and the decoders made of them."""

    def __init__(self, stamp: Any, missing: Any, category: Any = str) -> None:
        self.rounds = stamp is float
        time = ("ts", stamp, missing)
        arguments = ("args", Raw, NO_ARGUMENTS)
        # In the order in which Kineto writes them: msgspec looks for the next field first.
        common = [("cat", category, ""), ("name", str, ""), *_PLACE]
        fields: dict[str, list[Any]] = {
            "X": [*common, time, ("dur", float, 0.0), arguments],
            "B": [*common, time, ("dur", float, 0.0), arguments],
            "E": [*_PLACE, time],
            "C": [*common, time, ("id", Any, None), ("args", dict[str, Any], {})],
            "M": [("name", str, ""), *_PLACE, ("args", LabelArguments, NO_LABELS)],
        }
        for phase in FLOWS:
            fields[phase] = [("id", int | str, -1), *_PLACE, time, ("cat", category, "")]
        for phase in INSTANTS:
            fields[phase] = [*common, time, ("args", MemoryArguments, NO_MEMORY)]
        for phase in UNREAD:
            fields[phase] = []
        self.structs: dict[str, Any] = {
            phase: msgspec.defstruct(
                f"Phase_{phase}", columns, tag_field="ph", tag=phase, gc=phase == "C"
            )
            for phase, columns in fields.items()
        }
        self.phases: dict[Any, str] = {struct: phase for phase, struct in self.structs.items()}
        union: Any = None
        for struct in self.structs.values():
            union = struct if union is None else union | struct
        self.events = msgspec.json.Decoder(list[union], strict=False)
        self.event = msgspec.json.Decoder(union, strict=False)


USUAL = Family(float, NAN, Literal[categories.USUAL])
FAST = Family(float, NAN)
WHOLE = Family(int, None)
EXACT = Family(Raw, NOTHING)
UNTYPED = msgspec.json.Decoder(float_hook=str)
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")


def end_of_first(error: Exception) -> int | None:
    """Where the first value ends in a text that failed to decode for what follows it."""
    match = _TRAILING.search(str(error))
    return None if match is None else int(match.group(1)) - 1
