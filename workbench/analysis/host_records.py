"""What every host record says about the time that it covers, before any gap is looked at."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis import causes
from workbench.analysis.input_wait import input_rows
from workbench.analysis.kernel_loading import loading_calls
from workbench.analysis.launches import Launches
from workbench.analysis.nesting import Nesting, Rows, distinct, nest, nest_lanes
from workbench.analysis.steps import STEP_NAME, Steps
from workbench.analysis.unrecorded_work import waits_for_unseen
from workbench.trace.table import Kind, Trace

HOST_CODE: dict[str, int] = {cause: code for code, cause in enumerate(causes.HOST_ORDER)}
SYNCHRONIZATION = HOST_CODE["synchronization"]
OPERATOR = HOST_CODE["host_operators"]
PYTHON = HOST_CODE["host_python"]
NOTHING = HOST_CODE["host_other"]

RANGES = (Kind.OPERATOR, Kind.ANNOTATION)
CALLS = (Kind.RUNTIME, Kind.DRIVER)
HOST_KINDS = (*RANGES, *CALLS, Kind.PYTHON, Kind.OVERHEAD)

Codes = NDArray[np.uint8]

PROFILER_STEP_NS = 100_000_000
"""In real traces ``profiler.step()`` takes 0.02 to 0.6 ms; what is so long is none,"""
PAUSE = 20
"""unless each of several is about as long: the shortest, so many times."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HostRecords:
    """The records of all host threads, nested, each with the cause that it shows.

    Codes count in ``HOST_ORDER``: the smaller one wins.
    """

    nesting: Nesting
    """Operators, calls, Python frames and ranges that show a cause; other user ranges are not
    among them, because they may end on another thread and so cross what they do not enclose."""
    own: Codes
    """Per position: the cause that the record shows by itself."""
    cause: Codes
    """Per position: the first in order of its own and those of all records around it."""
    ranges: Nesting
    """User ranges that show no cause; they only name the place."""
    overhead: Rows
    """Rows of overhead that the profiler booked on no thread; it may stop any of them."""


def host_records(trace: Trace, launches: Launches, steps: Steps | None) -> HostRecords:
    """Classify and nest every record of the host threads."""
    events = trace.events
    host = events.of_kind(*HOST_KINDS)
    host[input_rows(trace)] = True
    rows = np.flatnonzero(host & (events.dur > 0))
    code = _own_codes(trace, launches, rows)
    homeless = _homeless_overhead(trace, rows)
    plain = (code == NOTHING) & (events.kind[rows] == Kind.ANNOTATION)
    kept = ~plain & ~homeless
    extra = _captures(trace) + _profiler_steps(trace, steps) + _unseen(trace, launches)
    nesting, own = _nest_with(trace, rows[kept], code[kept], extra)
    users = rows[plain]
    return HostRecords(
        nesting=nesting,
        own=own,
        cause=_inherited(own, nesting.parent),
        ranges=nest(
            users, events.lane[users], events.ts[users], events.ts[users] + events.dur[users]
        ),
        overhead=rows[homeless].astype(np.int32),
    )


def _own_codes(trace: Trace, launches: Launches, rows: NDArray[np.intp]) -> Codes:
    """The cause that each of the rows shows by itself."""
    events = trace.events
    kind, name = events.kind[rows], events.name[rows]
    code = np.full(len(rows), NOTHING, np.uint8)
    tables: tuple[tuple[tuple[Kind, ...], Callable[[str], str | None], int], ...] = (
        ((*RANGES, Kind.OTHER), causes.range_cause, NOTHING),
        (CALLS, causes.call_cause, NOTHING),
        ((Kind.PYTHON,), causes.python_cause, PYTHON),
        ((Kind.OVERHEAD,), causes.overhead_cause, NOTHING),
    )
    for kinds, cause_of, otherwise in tables:
        these = np.flatnonzero(np.isin(kind, kinds))
        used, index = np.unique(name[these], return_inverse=True)
        found = (cause_of(trace.names[number]) for number in used)
        known = [otherwise if cause is None else HOST_CODE[cause] for cause in found]
        code[these] = np.array(known, np.uint8)[index]
    operator = causes.operator_rows(trace)[rows] & (code == NOTHING)
    code[operator] = OPERATOR
    marked = np.zeros(len(events), bool)
    marked[input_rows(trace)] = True
    code[marked[rows]] = HOST_CODE["input"]
    marked[:] = False
    marked[_blocking_copies(trace, launches)] = True
    code[marked[rows] & (code == NOTHING)] = SYNCHRONIZATION
    marked[:] = False
    marked[loading_calls(trace, launches)] = True
    code[marked[rows] & (code == NOTHING)] = HOST_CODE["kernel_loading"]
    return code


def _blocking_copies(trace: Trace, launches: Launches) -> NDArray[np.int32]:
    """Rows of the calls whose copy touches pageable memory: they return when it is done."""
    events = trace.events
    pageable = trace.name_codes(lambda name: causes.PAGEABLE_PATTERN in name.lower())
    copies = events.rows(Kind.MEMCPY)
    copies = copies[np.isin(events.name[copies], pageable)]
    calls = launches.launch[copies]
    return calls[calls >= 0]


def _homeless_overhead(trace: Trace, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether a row is overhead on a lane that holds nothing else of the host."""
    events = trace.events
    overhead = events.kind[rows] == Kind.OVERHEAD
    threads = distinct(events.lane[rows[~overhead]])
    return np.asarray(overhead & ~np.isin(events.lane[rows], threads))


Extra = list[tuple[int, int, int, int, str]]
"""Row that stands for it, lane, start, end, cause: stretches that no single record covers."""


def _captures(trace: Trace) -> Extra:
    """From each begin of a graph capture to its end, on the thread that captures."""
    events = trace.events
    begin = np.isin(events.name, causes.codes_matching(trace, causes.CAPTURE_BEGIN))
    end = np.isin(events.name, causes.codes_matching(trace, causes.CAPTURE_END))
    calls = np.flatnonzero((begin | end) & events.of_kind(*CALLS))
    found: Extra = []
    opened: dict[int, int] = {}
    for row in calls.tolist():
        lane = int(events.lane[row])
        if begin[row]:
            opened.setdefault(lane, row)
        elif lane in opened:
            first = opened.pop(lane)
            stretch = int(events.ts[first]), int(events.ts[row] + events.dur[row])
            found.append((first, lane, *stretch, "graph_capture"))
    return found


def _unseen(trace: Trace, launches: Launches) -> Extra:
    """The part of blocking calls in which the device did what the trace does not hold."""
    events, waits = trace.events, waits_for_unseen(trace, launches)
    return [
        (row, int(events.lane[row]), start, int(events.ts[row] + events.dur[row]), "unknown")
        for row, start in zip(waits.call.tolist(), waits.start.tolist(), strict=True)
    ]


def _profiler_steps(trace: Trace, steps: Steps | None) -> Extra:
    """Between the range of one step and that of the next, ``profiler.step()`` runs.

    A loop that marks its steps by itself may do anything there: where it waits for input, launches
    or begins a range, it is no call of the profiler (which runs an operator or two of its own).
    """
    if steps is None:
        return []
    events = trace.events
    numbers = {
        code: int(match.group(1))
        for code, name in enumerate(trace.names)
        if (match := STEP_NAME.match(name))
    }
    here = events.lane == steps.lane
    marks = here & np.isin(events.name, list(numbers)) & events.of_kind(*RANGES)
    rows = np.flatnonzero(marks)
    launching = np.isin(events.name, causes.codes_matching(trace, causes.LAUNCH_PATTERN))
    busy = (launching & events.of_kind(*CALLS)) | (events.kind == Kind.ANNOTATION)
    busy[input_rows(trace)] = True
    others = events.ts[here & busy & ~marks]
    lasts = events.ts[rows[1:]] - events.end[rows[:-1]]
    longest = max(PROFILER_STEP_NS, PAUSE * int(lasts.min()) if len(lasts) > 2 else 0)
    found: Extra = []
    for row, following in zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True):
        stretch = int(events.ts[row] + events.dur[row]), int(events.ts[following])
        if stretch[1] - stretch[0] > longest:
            continue  # a validation or a checkpoint that nothing recorded
        successive = numbers[int(events.name[following])] == numbers[int(events.name[row])] + 1
        empty = np.searchsorted(others, stretch[0]) == np.searchsorted(others, stretch[1])
        if successive and empty and stretch[1] > stretch[0]:
            found.append((following, steps.lane, *stretch, "profiler"))
    return found


def _nest_with(
    trace: Trace, rows: NDArray[np.intp], code: Codes, extra: Extra
) -> tuple[Nesting, Codes]:
    """Nest the rows together with the extra stretches; codes in the order of the positions."""
    events = trace.events
    order = np.argsort(events.lane[rows], kind="stable")
    row, own = rows[order].astype(np.int32), code[order]
    del order
    extra = sorted(extra, key=lambda each: (each[1], each[2], -each[3]))
    places = _places(trace, row, extra)
    if extra:
        row = np.insert(row, places, [each[0] for each in extra])
        own = np.insert(own, places, [HOST_CODE[each[4]] for each in extra])
    lane, start = events.lane[row], events.ts[row]
    end = start + events.dur[row]
    for number, (_, on, begins, ends, _) in enumerate(extra):
        at = places[number] + number
        lane[at], start[at], end[at] = on, begins, ends
    return nest_lanes(row, lane, start, end), own


def _places(trace: Trace, row: Rows, extra: Extra) -> list[int]:
    """Before which of the rows each extra stretch belongs; on equal stretches it goes outside."""
    if not extra:
        return []
    events = trace.events
    lanes, starts = events.lane[row], events.ts[row]
    found = []
    for _, lane, start, end, _ in extra:
        first, last = np.searchsorted(lanes, (lane, lane + 1))
        here = starts[first:last]
        low, high = np.searchsorted(here, start, "left"), np.searchsorted(here, start, "right")
        tied = row[first + low : first + high]
        longer = int((events.ts[tied] + events.dur[tied] > end).sum())
        found.append(int(first + low) + longer)
    return found


def _inherited(own: Codes, parent: Rows) -> Codes:
    """The smallest code of every record and all that enclose it, by doubling leaps."""
    best, above = own.copy(), parent.copy()
    at = np.flatnonzero(above >= 0)
    while len(at):
        ancestor = above[at]
        best[at] = np.minimum(best[at], best[ancestor])
        above[at] = above[ancestor]
        at = at[above[at] >= 0]
    return best
