"""The longest idle gaps of a device, each with what the host did meanwhile."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from workbench.analysis.causes import CAUSE_CODE, CAUSES
from workbench.analysis.idle import ROUNDING_NS, Idle
from workbench.analysis.steps import STEP_NAME
from workbench.trace.table import Trace

if TYPE_CHECKING:
    import pandas as pd

MOST_GAPS = 50
"""Of each device: few enough to keep of every rank."""
COLUMNS = (
    "device",
    "start_ns",
    "in_window_ns",
    "length_ns",
    "share",
    "step",
    "causes",
    "host",
    "thread",
    "ended_by",
    "source",
    "first_use_ns",
    "unrecorded_ns",
    "uncertainty_ns",
    "gaps",
)

UNRECORDED = "host code that was not recorded"
_OF_THE_HOST = frozenset(CAUSE_CODE[name] for name in ("host_other", "host_python"))

Named = tuple[tuple[str, int], ...]
"""Names with the nanoseconds of each, most first."""


class _Piece(NamedTuple):
    length: int
    cause: int
    host: int
    operator: int
    source: int
    first_use: bool
    unrecorded: bool


def longest_gaps(trace: Trace, idle: Idle, *, most: int = MOST_GAPS) -> "pd.DataFrame":
    """The longest gaps of a device in its window, longest first; rounding is none.

    ``causes`` are the causes with their nanoseconds, which sum to the gap. ``host`` is what the
    thread that launched the next work was in, such as ``cudaStreamSynchronize in aten::item``, with
    nanoseconds; ``UNRECORDED`` where it was in no record. ``source`` is the innermost Python line
    of the longest piece that has one, ``gaps`` the number of all gaps of the device. What was not
    recorded is missing.

    Args:
        trace: The event table.
        idle: The idle time of one device.
        most: Gaps that are given.
    """
    import pandas as pd

    pieces = idle.pieces
    length = pieces.gap_length
    order = np.lexsort((pieces.gap_start, -length))[:most]
    first = np.cumsum(pieces.gap_pieces) - pieces.gap_pieces
    rows = []
    for at in order[length[order] > ROUNDING_NS].tolist():
        inside = range(int(first[at]), int(first[at] + pieces.gap_pieces[at]))
        parts = [_piece(idle, number) for number in inside]
        work, step = int(pieces.gap_work[at]), int(pieces.gap_step[at])
        rows.append(
            {
                "device": idle.device,
                "start_ns": int(pieces.gap_start[at]),
                "in_window_ns": int(pieces.gap_start[at]) - idle.range.start,
                "length_ns": int(length[at]),
                "share": int(length[at]) / idle.total,
                "step": step if step >= 0 else None,
                "causes": _summed((CAUSES[each.cause], each.length) for each in parts),
                "host": _summed(_doings(trace, parts)),
                "thread": _thread(trace, parts, _launch(idle, work)),
                "ended_by": _name(trace, work),
                "source": _source(trace, parts),
                "first_use_ns": sum(each.length for each in parts if each.first_use),
                "unrecorded_ns": sum(each.length for each in parts if each.unrecorded),
                "uncertainty_ns": idle.uncertainty,
                "gaps": idle.gaps,
            }
        )
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return table.astype({"step": "Int64"})


def _piece(idle: Idle, number: int) -> _Piece:
    pieces = idle.pieces
    return _Piece(
        length=int(pieces.length[number]),
        cause=int(pieces.cause[number]),
        host=int(pieces.host[number]),
        operator=int(pieces.operator[number]),
        source=int(pieces.source[number]),
        first_use=bool(pieces.first_use[number]),
        unrecorded=bool(pieces.unrecorded[number]),
    )


def _summed(pairs: Iterator[tuple[str, int]]) -> Named:
    total: dict[str, int] = {}
    for name, ns in pairs:
        total[name] = total.get(name, 0) + ns
    return tuple(sorted(total.items(), key=lambda pair: -pair[1]))


def _doings(trace: Trace, parts: list[_Piece]) -> Iterator[tuple[str, int]]:
    """What the host was in, per piece of which any record tells it.

    That is the record that explains the piece, with the operator around it where there is one. The
    piece between a call and what it launched is the call's, too, with the operator around the call.
    """
    length = trace.events.dur
    around = {
        each.host: each.operator
        for each in parts
        if min(each.host, each.operator) >= 0 and length[each.operator] > length[each.host]
    }
    for each in parts:
        said = _name(trace, each.host)
        outer = _name(trace, around.get(each.host, -1))
        if said is None:
            said = _name(trace, each.operator)
        elif outer is not None:
            said = f"{said} in {outer}"
        if said is None and each.cause in _OF_THE_HOST:
            said = UNRECORDED
        if said is not None:
            yield said, each.length


def _name(trace: Trace, row: int) -> str | None:
    """The name of an event; a step is no answer to what the host did."""
    if row < 0:
        return None
    name = trace.names[trace.events.name[row]]
    return None if STEP_NAME.match(name) else name


def _launch(idle: Idle, work: int) -> int:
    return int(idle.pieces.launch_of[work]) if work >= 0 else -1


def _thread(trace: Trace, parts: list[_Piece], launch: int) -> str | None:
    """The thread of the longest piece that a record explains, else the one that launched."""
    known = [each for each in parts if each.host >= 0 or each.operator >= 0]
    row = launch
    if known:
        longest = max(known, key=lambda each: each.length)
        row = longest.host if longest.host >= 0 else longest.operator
    if row < 0:
        return None
    lane = trace.lanes[trace.events.lane[row]]
    return lane.thread or f"thread {lane.tid}"


def _source(trace: Trace, parts: list[_Piece]) -> str | None:
    known = [each for each in parts if each.source >= 0]
    return _name(trace, max(known, key=lambda each: each.length).source) if known else None
