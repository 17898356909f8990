"""The events of one line of an XLA profile as columns."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.trace.formats.content import Bytes
from workbench.trace.formats.records import Records, stamps
from workbench.trace.formats.xplane_messages import Line, Plane, read_events
from workbench.trace.stamps import INVALID

_LARGEST = 2**39
_PS_PER_NS = 1000


class EventColumns(NamedTuple):
    """Times are nanoseconds, both ends rounded down, so that neighbours stay neighbours."""

    name: NDArray[np.int64]
    """Codes of ``Records.names``."""
    ts: NDArray[np.int64]
    dur: NDArray[np.int64]
    correlation: NDArray[np.int64]
    told: dict[int, dict[str, Any]]
    """Other statistics of the events that have any, by position."""


def event_columns(records: Records, data: Bytes, plane: Plane, line: Line) -> EventColumns:
    """Read all events of a line.

    Raises:
        WireError: The line is damaged.
    """
    code_of: dict[int, int] = {}
    names: list[int] = []
    begin: list[int] = []
    end: list[int] = []
    correlation: list[int] = []
    others: dict[int, dict[str, Any]] = {}
    for name, offset, length, told in read_events(data, line, plane.stat_names, plane.told):
        code = code_of.get(name)
        if code is None:
            shown = plane.event_names.get(name) or f"event {name}"
            code = code_of[name] = records.names[shown]
        number = -1
        if told is not None:
            number = whole(told.pop("correlation_id", -1))
            if told:
                others[len(names)] = told
        names.append(code)
        begin.append(line.start_ns + offset // _PS_PER_NS if length >= 0 else INVALID)
        end.append(line.start_ns + (offset + length) // _PS_PER_NS)
        correlation.append(number if number < _LARGEST else -1)
    ts, until = stamps(begin), stamps(end)
    known = (ts != INVALID) & (until != INVALID)
    return EventColumns(
        np.array(names, np.int64),
        np.where(known, ts, INVALID),
        np.where(known, until - np.where(known, ts, until), 0),
        np.array(correlation, np.int64),
        others,
    )


def whole(value: Any) -> int:
    """A number that a statistic tells, also as text; ``-1`` where it tells none."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < 2**63 else -1
