"""The planes of the host in an XLA profile: calls, Python frames, ranges and steps."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.trace.formats.content import Bytes
from workbench.trace.formats.records import Records
from workbench.trace.formats.xla_names import HOST_PLANES, host_kind
from workbench.trace.formats.xplane_columns import EventColumns, event_columns, whole
from workbench.trace.formats.xplane_device import Runs
from workbench.trace.formats.xplane_messages import Plane, read_line
from workbench.trace.stamps import INVALID
from workbench.trace.table import DEVICE_WORK, Kind


class Waiting(NamedTuple):
    """A host record whose meaning shows only when all planes are read."""

    ts: int
    dur: int
    name: int
    lane: int
    number: int
    """The step's number, or the id of the program's run."""
    device: int
    """The device that the run is for, or -1."""


@dataclass(kw_only=True)
class HostWaiting:
    """The records that wait."""

    steps: list[Waiting] = field(default_factory=list)
    runs: list[Waiting] = field(default_factory=list)


def add_host_plane(records: Records, data: Bytes, plane: Plane, waiting: HostWaiting) -> None:
    """Add the threads of one host; steps and starts of programs are kept for ``settle``.

    The lines of a plane that is no host's (of a network, say) are records of no kind.
    """
    of_host = plane.name.startswith(HOST_PLANES)
    for span in plane.lines:
        line = read_line(data, span)
        events = event_columns(records, data, plane, line)
        lane = records.lane(plane.name, f"{line.id} {line.name}", plane.name, line.name)
        kept = np.ones(len(events.ts), bool)
        operation = np.zeros(len(events.ts), bool)
        for position, told in events.told.items():
            operation[position] = "hlo_op" in told or "tf_op" in told
            for key, waits in (("step_num", waiting.steps), ("run_id", waiting.runs)):
                number = whole(told.get(key))
                if kept[position] and number >= 0 and events.dur[position] > 0:
                    kept[position] = False
                    device = whole(told.get("device_ordinal"))
                    waits.append(_waiting(events, position, lane, number, device))
        moments = kept & (events.dur == 0) & (events.ts != INVALID)
        kept &= ~moments
        records.add_instants(
            ts=events.ts[moments], name=events.name[moments], category="XLA", lane=lane
        )
        records.add(
            ts=events.ts[kept],
            dur=events.dur[kept],
            name=events.name[kept],
            kind=_kinds(records, events.name[kept], operation[kept]) if of_host else Kind.OTHER,
            lane=lane,
            correlation=events.correlation[kept],
        )


def _waiting(events: EventColumns, position: int, lane: int, number: int, device: int) -> Waiting:
    ts, dur = int(events.ts[position]), int(events.dur[position])
    return Waiting(ts, dur, int(events.name[position]), lane, number, device)


def _kinds(
    records: Records, name: NDArray[np.int64], operation: NDArray[np.bool_]
) -> NDArray[np.uint8]:
    used, index = np.unique(name * 2 + operation, return_inverse=True)
    names = records.names.texts
    kinds = [host_kind(names[code // 2], bool(code % 2)) for code in used.tolist()]
    return np.array(kinds, np.uint8)[index]


def settle(records: Records, waiting: HostWaiting, runs: Runs) -> None:
    """Add the records that waited.

    The first host record of a run launches it; later ones only tell that it ended. Steps are named
    as torch names them where their times can be told: when device work is joined to the host, or
    when there is none. Otherwise they stay ranges under their own name, and the window is the
    whole recording.
    """
    _add_launches(records, waiting.runs, runs)
    kind, correlation = records.peek("kind"), records.peek("correlation")
    work = np.isin(kind, DEVICE_WORK)
    calls = np.isin(kind, (Kind.RUNTIME, Kind.DRIVER)) & (correlation > 0)
    joined = np.isin(correlation[work], correlation[calls]).any()
    certain = bool(joined or not work.any())
    for step in waiting.steps:
        name = step.name
        if certain:
            name = records.names[f"ProfilerStep#{step.number}"]
        records.add(ts=[step.ts], dur=[step.dur], name=name, kind=Kind.ANNOTATION, lane=step.lane)


def _add_launches(records: Records, found: list[Waiting], runs: Runs) -> None:
    names = records.names.texts
    first_of_run: dict[int, int] = {}
    for (run, _), code in runs.items():
        first_of_run.setdefault(run, code)
    launched: set[int] = set()
    for record in sorted(found):
        correlation = runs.get((record.number, record.device), -1)
        if correlation < 0 and record.device < 0:
            correlation = first_of_run.get(record.number, -1)
        first = correlation >= 0 and correlation not in launched
        launched.add(correlation)
        records.add(
            ts=[record.ts],
            dur=[record.dur],
            name=record.name,
            kind=Kind.RUNTIME if first else host_kind(names[record.name], False),
            lane=record.lane,
            correlation=correlation if first else -1,
        )
