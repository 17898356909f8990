"""The calls that launched kernels: how long each took, what it brought, and when that began.

A graph launch is one call, however many kernels it brings: its work begins with the first of them
and lasts as long as all of them together.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.columns import taken
from workbench.analysis.devices import work_rows
from workbench.analysis.launches import Launches
from workbench.analysis.steady import counted_ranges, inside
from workbench.analysis.steps import Steps
from workbench.trace.table import Kind, Trace

Times = NDArray[np.int64]
Rows = NDArray[np.int32]

_GRAPH = re.compile(r"graph_?launch", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, eq=False)
class LaunchCalls:
    """Calls that launched at least one kernel on a device, in time order, on the host's clock."""

    row: Rows
    """Row of the call in the event table."""
    start: Times
    end: Times
    begun: Times
    """Start of the first work that the call brought."""
    work_ns: Times
    """Summed length of all work that it brought."""
    kernels: Rows
    stream: NDArray[np.int32]
    """Stream of the first work."""
    graph: NDArray[np.bool_]
    """Whether the call launched a graph."""
    step: Rows
    """Index of the complete step that the call lies in, or -1."""

    def __len__(self) -> int:
        return len(self.row)

    @property
    def delay_ns(self) -> Times:
        """From the end of each call to the begin of its work; 0 for work that began inside it."""
        return np.asarray(np.maximum(self.begun - self.end, 0), np.int64)

    @property
    def short(self) -> NDArray[np.bool_]:
        """Whether the host called longer than the device worked."""
        return np.asarray(self.end - self.start > self.work_ns)


def launch_calls_of(
    trace: Trace, launches: Launches, steps: Steps | None, device: int
) -> LaunchCalls:
    """The calls that launched kernels on one device."""
    events = trace.events
    rows = work_rows(trace, device)
    rows = rows[launches.launch[rows] >= 0]
    call, first, index = np.unique(launches.launch[rows], return_index=True, return_inverse=True)
    work, kernels = np.zeros(len(call), np.int64), np.zeros(len(call), np.int32)
    np.add.at(work, index, events.dur[rows])
    np.add.at(kernels, index, events.kind[rows] == Kind.KERNEL)
    start = events.ts[call]
    graph = np.isin(events.name[call], trace.name_codes(lambda n: bool(_GRAPH.search(n))))
    found = LaunchCalls(
        row=call.astype(np.int32),
        start=start,
        end=start + events.dur[call],
        begun=events.ts[rows[first]] + launches.clock_offset.get(device, 0),
        work_ns=work,
        kernels=kernels,
        stream=events.stream[rows[first]],
        graph=graph,
        step=np.full(len(call), -1, np.int32) if steps is None else _step_of(steps, start),
    )
    return taken(found, kernels > 0)


def _step_of(steps: Steps, at: Times) -> Rows:
    return steps.step_of(at).astype(np.int32)


def short_share(calls: LaunchCalls, steps: Steps | None) -> float | None:
    """Share of the calls in the steps that count that last longer than their work."""
    counted = taken(calls, inside(counted_ranges(steps), calls.start))
    return float(counted.short.mean()) if len(counted) else None
