"""Perfetto's protobuf trace (``.pftrace``), as torch's profiler writes it from 2.14 on.

Read after the encoder that torch publishes (``torch/csrc/profiler/cupti/monitor_pftrace.cpp``):
host records are slices of thread tracks, device work is GpuRenderStageEvents on a queue for each
stream, the arguments that Kineto's JSON has are debug annotations. Each becomes the event that the
JSON would hold, so both give the same table. Slices of other programs are read as host records.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Any

from workbench.errors import TraceError
from workbench.trace.assemble import assemble
from workbench.trace.formats import perfetto_messages as messages
from workbench.trace.formats.content import MEMORY_LIMIT, Bytes, Content
from workbench.trace.formats.perfetto_kineto import counter, device_work, host_slice, instant
from workbench.trace.formats.perfetto_lanes import Lanes
from workbench.trace.formats.perfetto_messages import Event, Packet, Sequence, Stage, Track
from workbench.trace.formats.perfetto_slices import Slices
from workbench.trace.formats.protobuf import BYTES, WireError, fields, varint
from workbench.trace.gather import Gatherer
from workbench.trace.notes import Notes
from workbench.trace.schema import EXACT
from workbench.trace.table import Trace, Violation

ENDINGS = (".pftrace", ".perfetto-trace", ".pftrace.gz")
_WIRES: dict[int, int] = {
    **dict.fromkeys((3, 8, 10, 13, 41, 42, 58, 79, 87), 0),
    **dict.fromkeys((6, 11, 12, 33, 35, 36, 43, 44, 45, 50, 52, 53, 59, 60), 2),
}
"""Wire types of the fields that packets begin with."""
_TELLING = frozenset({6, 11, 12, 33, 36, 50, 53, 60})
_BATCH = 10_000
PACKET_LIMIT = 10_000_000
"""Most packets of one file; each takes about half a kilobyte while it is read."""
_ROCPROF = "kernel_dispatch"


def is_perfetto(head: bytes, name: str) -> bool:
    """Whether a file is a list of TracePackets: its first one holds only what packets hold."""
    if head[:1] != b"\n":
        return False
    named = name.lower().endswith(ENDINGS)
    found: set[int] = set()
    try:
        length, start = varint(head, 1, len(head))
        for number, wire, _, _ in fields(head, start, min(start + length, len(head))):
            if _WIRES.get(number) != wire:
                return named and number not in _WIRES
            found.add(number)
    except WireError as error:
        return (error.cut and bool(found & _TELLING)) or named
    return bool(found & _TELLING) or named


def read_perfetto(content: Content) -> Trace:
    """Read the slices, counters and GPU work of a trace.

    Raises:
        TraceError: It holds none, or is damaged from the beginning.
    """
    reader = _Reader(content.name)
    data = content.whole()
    try:
        reader.read(data, 0, len(data))
    except WireError as error:
        if not reader.packets:
            raise TraceError(
                f"{content.name} cannot be read as a Perfetto trace: at byte {error.offset:,}, "
                f"{error.why}. Copy the file again, or export JSON."
            ) from None
        reader.notes.truncated(error.offset, error.why)
    return reader.finish()


class _Reader:
    """Packets become events, then the events of every lane are told together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.notes = Notes(name)
        self.packets = 0
        self._sequences: dict[int, Sequence] = {}
        self._tracks: dict[int, Track] = {}
        self._slices: dict[int, Slices] = {}
        self._moments: list[tuple[Callable[..., Any], int, int, Event]] = []
        self._stages: list[tuple[int, Stage]] = []
        self._damaged = 0
        self._inside = False
        self._room = MEMORY_LIMIT

    def read(self, data: Bytes, at: int, end: int) -> None:
        """Take every packet of a stretch of bytes."""
        for number, wire, start, stop in fields(data, at, end):
            if number != messages.PACKET or wire != BYTES:
                continue
            self.packets += 1
            if self.packets > PACKET_LIMIT:
                raise TraceError(
                    f"{self.name} has more than {PACKET_LIMIT:,} packets: record fewer steps, or "
                    "export JSON."
                )
            try:
                self._take(data, messages.read_packet(data, (start, stop)))
            except (WireError, ValueError, OverflowError):
                self._damaged += 1

    def _take(self, data: Bytes, packet: Packet) -> None:
        spans = packet.spans
        if messages.COMPRESSED in spans:
            if self._inside:
                raise WireError(0, "compressed packets lie in compressed packets")
            inside = self._inflated(bytes(data[slice(*spans[messages.COMPRESSED])]))
            self._inside = True
            try:
                self.read(inside, 0, len(inside))
            finally:
                self._inside = False
            return
        if messages.TRACK in spans:
            track = messages.read_track(data, spans[messages.TRACK])
            self._tracks[track.uuid] = track
        sequence = self._sequences.get(packet.sequence)
        if sequence is None or packet.cleared:
            sequence = self._sequences[packet.sequence] = Sequence()
        if messages.CLOCK_SNAPSHOT in spans:
            messages.take_clocks(data, spans[messages.CLOCK_SNAPSHOT], sequence)
        if messages.INTERNED in spans:
            messages.intern(data, spans[messages.INTERNED], sequence)
        if messages.DEFAULTS in spans:
            messages.take_defaults(data, spans[messages.DEFAULTS], sequence)
        if messages.RENDER_STAGE in spans:
            stage = messages.read_stage(data, spans[messages.RENDER_STAGE], sequence)
            self._stages.append((_moment(packet, sequence), stage))
        if messages.TRACK_EVENT in spans:
            event = messages.read_event(data, spans[messages.TRACK_EVENT], sequence)
            self._take_event(packet, sequence, event)

    def _inflated(self, data: bytes) -> bytes:
        try:
            found = zlib.decompressobj().decompress(data, self._room)
        except zlib.error as error:
            raise WireError(0, f"compressed packets are damaged ({error})") from None
        self._room -= len(found)
        if self._room <= 0:
            raise TraceError(f"{self.name} has more than {MEMORY_LIMIT:,} bytes of packets.")
        return found

    def _take_event(self, packet: Packet, sequence: Sequence, event: Event) -> None:
        at = _moment(packet, sequence)
        track = sequence.default_track if event.track is None else event.track
        if event.category == _ROCPROF:
            raise TraceError(
                f"{self.name} is a trace of rocprofv3, whose Perfetto output tells less than its "
                "JSON: write that with `rocprofv3 --output-format json`, and open it instead."
            )
        slices = self._slices.setdefault(packet.sequence, Slices())
        if event.type == messages.BEGIN:
            slices.begin(at, track, (track, event))
        elif event.type == messages.END:
            slices.end(at, track)
        elif event.type == messages.INSTANT:
            self._moments.append((instant, at, track, event))
        elif event.type == messages.COUNTER and event.value is not None:
            self._moments.append((counter, at, track, event))

    def finish(self) -> Trace:
        """The table of everything that was read."""
        gatherer = Gatherer()
        lanes = Lanes(self._tracks, gatherer.labels)
        batch: list[Any] = []
        for event in self._events(lanes):
            batch.append(event)
            if len(batch) >= _BATCH:
                gatherer.add(batch, EXACT)
                batch = []
        gatherer.add(batch, EXACT)
        if not gatherer.phases:
            raise TraceError(
                f"{self.name} is a Perfetto trace without slices of a program or work of a GPU. "
                "Export it from torch.profiler, or record with track events."
            )
        unmatched = sum(slices.unmatched for slices in self._slices.values())
        self._note(unmatched, sum(gatherer.phases.values()))
        return assemble(self.name, gatherer, {}, self.notes)

    def _note(self, unmatched: int, known: int) -> None:
        if unmatched:
            message = f"Begin events without an end, or ends without a begin ({unmatched:,}), "
            self.notes.add(
                Violation(
                    code="unmatched_begin_end", message=f"{message}were left out.", count=unmatched
                )
            )
        if self._damaged:
            share = self._damaged / (self._damaged + known)
            message = f"Damaged packets were left out ({self._damaged:,})."
            self.notes.add(
                Violation(
                    code="unreadable_records", message=message, count=self._damaged, share=share
                )
            )

    def _events(self, lanes: Lanes) -> Iterator[Any]:
        for slices in self._slices.values():
            for at, length, (track, event) in slices.slices():
                yield host_slice(at, length, track, event, lanes)
        for at, stage in self._stages:
            yield device_work(at, stage, lanes)
        for make, at, track, event in self._moments:
            yield make(at, track, event, lanes)


def _moment(packet: Packet, sequence: Sequence) -> int:
    """The packet's stamp in nanoseconds; a writer's own clock may count from its last packet."""
    if packet.timestamp is None:
        raise ValueError("no stamp")
    number = packet.clock if packet.clock is not None else sequence.clock
    clock = None if number is None else sequence.clocks.get(number)
    if clock is None:
        return packet.timestamp
    last, unit, adds_up = clock
    at = packet.timestamp * unit + (last if adds_up else 0)
    if adds_up and number is not None:
        sequence.clocks[number] = (at, unit, adds_up)
    return at
