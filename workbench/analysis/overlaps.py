"""Device records that are there twice, or begin before their stream was free, and may not.

A stream runs one thing after another, so a record of the same name, start and length on the same
stream is the same record again. Legal among the others are overlaps of at most 1 us, which come
from rounding, those after a programmatic launch (``cudaLaunchKernelExC``, ``cuLaunchKernelEx``),
and those within one graph launch.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import work_rows
from workbench.analysis.launches import Launches
from workbench.trace.table import Kind, Trace

ROUNDING_NS = 1_000

_PROGRAMMATIC = re.compile(r"LaunchKernelEx")
_GRAPH = re.compile(r"graph_?launch", re.IGNORECASE)


def is_graph_launch(name: str) -> bool:
    """Whether a call of this name launches a whole graph."""
    return _GRAPH.search(name) is not None


def doubled_rows(trace: Trace) -> NDArray[np.intp]:
    """Rows of device work that another one equals in stream, start, length and name."""
    events = trace.events
    keys = (events.name, events.dur, events.ts, events.stream, events.device)
    return _again(trace, work_rows(trace, None), keys)


def doubled_host_rows(trace: Trace) -> NDArray[np.intp]:
    """Rows of operators and calls that another one equals, the id of the record included.

    Without ids a re-dispatch, which takes no time that is seen, equals the operator around it.
    """
    events = trace.events
    rows = events.rows(Kind.OPERATOR, Kind.RUNTIME, Kind.DRIVER)
    rows = rows[(events.external_id[rows] > 0) | (events.correlation[rows] > 0)]
    keys = (events.name, events.dur, events.ts, events.lane, events.external_id, events.correlation)
    return _again(trace, rows, keys)


def _again(trace: Trace, rows: NDArray[np.intp], keys: Sequence[NDArray[Any]]) -> NDArray[np.intp]:
    """Of rows that are equal in all keys, every one but the first."""
    rows = rows[trace.events.dur[rows] > 0]
    rows = rows[np.lexsort([key[rows] for key in keys])]
    again = np.ones(max(len(rows) - 1, 0), bool)
    for key in keys:
        again &= key[rows[1:]] == key[rows[:-1]]
    return np.sort(rows[1:][again])


def overlapping_rows(trace: Trace, launches: Launches) -> NDArray[np.intp]:
    """Rows that start more than 1 us before their stream was free and may not."""
    events = trace.events
    rows = np.setdiff1d(work_rows(trace, None), doubled_rows(trace), assume_unique=True)
    order = np.lexsort((events.ts[rows], events.stream[rows], events.device[rows]))
    rows = rows[order]
    stream, device = events.stream[rows], events.device[rows]
    edge = np.flatnonzero((np.diff(stream) != 0) | (np.diff(device) != 0)) + 1
    later: list[NDArray[np.intp]] = [rows[:0]]
    earlier: list[NDArray[np.intp]] = [rows[:0]]
    for mine in np.split(rows, edge):
        reach = np.maximum.accumulate(events.end[mine])
        bad = np.flatnonzero(reach[:-1] - events.ts[mine[1:]] > ROUNDING_NS)
        if len(bad):
            owner = np.maximum.accumulate(
                np.where(events.end[mine] == reach, np.arange(len(mine)), 0)
            )
            later.append(mine[bad + 1])
            earlier.append(mine[owner[bad]])
    return _illegal(trace, launches, np.concatenate(later), np.concatenate(earlier))


def _illegal(
    trace: Trace, launches: Launches, later: NDArray[np.intp], earlier: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The later rows that neither a programmatic launch nor one common graph launch explains.

    A kernel without a launch record is held for programmatic when its name is launched so later.
    """
    events = trace.events
    call = launches.launch[later]
    name = events.name[np.maximum(call, 0)]
    so_launched = trace.name_codes(lambda n: bool(_PROGRAMMATIC.search(n)))
    of_kernel = events.name[launches.launch >= 0]
    its_call = events.name[launches.launch[launches.launch >= 0]]
    known = np.unique(of_kernel[np.isin(its_call, so_launched)])
    unseen = np.isin(events.name[later], known)
    programmatic = np.where(call >= 0, np.isin(name, so_launched), unseen)
    graph = np.isin(name, trace.name_codes(is_graph_launch))
    graph &= (call >= 0) & (call == launches.launch[earlier])
    return later[~(programmatic | graph)]
