"""Gradient buckets against backward: when each one moves, and what is left when backward is over.

A bucket is an all-reduce or reduce-scatter that begins after a backward pass began and before the
next one does. What runs beside backward is free; a bucket that comes late, as the last one must,
has nothing left to hide behind. A backward pass lasts from its first node of the autograd engine to
its last one; on a device from the first to the last end of the compute launched in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.collectives import HOST
from workbench.analysis.communication_names import is_communication
from workbench.analysis.devices import work_rows
from workbench.analysis.host import engine_nodes
from workbench.analysis.intervals import Spans, contains, union
from workbench.trace.table import Kind, Trace

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from workbench.analysis.collectives import Collectives
    from workbench.analysis.launches import Launches
    from workbench.analysis.steps import Steps

COLUMNS = (
    *("step", "device", "backward", "bucket", "collective", "bytes"),
    *("start_ns", "end_ns", "backward_ns", "after_ns", "exposed_ns"),
)
KINDS = ("all_reduce", "reduce_scatter")
"""How gradients are summed; the gathering of sharded parameters is no bucket."""


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """The buckets of the backward passes of one rank, means over the passes with most buckets."""

    passes: int
    buckets: int
    """Of one pass."""
    bytes: int | None
    """Of the largest one."""
    total_ns: float
    """Length of all buckets of a pass together."""
    exposed_ns: float
    """The part of it that nothing hides."""
    last_exposed_ns: float
    """Of that, what the last bucket has."""
    backward_ns: float


def bucket_table(
    trace: Trace, found: Collectives, launches: Launches, steps: Steps | None
) -> pd.DataFrame | None:
    """One row a bucket; ``None`` where the trace holds no backward or no bucket.

    Columns are ``COLUMNS``. ``start_ns`` and ``end_ns`` count from the beginning of the backward
    pass, ``after_ns`` is the part of the bucket after the end of the pass, ``exposed_ns`` the part
    in which nothing is computed; ``step`` is missing outside the marked steps, ``device`` is -1 for
    the host.
    """
    import pandas as pd

    passes = backward_passes(trace)
    if not len(passes.start) or not len(found):
        return None
    exposed = np.zeros(len(found), np.int64)
    np.add.at(exposed, found.exposed.call, found.exposed.end - found.exposed.start)
    summing = np.array([call.kind in KINDS for call in found.calls])
    rows: list[tuple[object, ...]] = []
    for device in np.unique(found.device[summing]).tolist():
        begins, ends = _on(trace, device, passes, launches)
        calls = np.flatnonzero(summing & (found.device == device))
        owner = np.searchsorted(begins, found.start[calls], "right") - 1
        for number in np.unique(owner[owner >= 0]).tolist():
            begin, end = int(begins[number]), int(ends[number])
            step = _step_of(steps, int(passes.start[number]))
            for bucket, call in enumerate(calls[owner == number].tolist()):
                start, stop = int(found.start[call]), int(found.end[call])
                after = max(stop - max(start, end), 0)
                told = found.calls[call]
                where = (step, device, number, bucket, told.kind, told.bytes)
                times = (start - begin, stop - begin, end - begin, after, int(exposed[call]))
                rows.append((*where, *times))
    if not rows:
        return None
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"step": "Int64", "bytes": "Int64"})


def summed_buckets(table: pd.DataFrame | None) -> Buckets | None:
    """The passes with most buckets, in means: others belong to micro-batches or other layers."""
    if table is None:
        return None
    keys = ["device", "backward"]
    size = table.groupby(keys)["bucket"].transform("size")
    full = table[size == size.max()]
    last = full[full["bucket"] == full.groupby(keys)["bucket"].transform("max")]
    passes = len(last)
    sizes = full["bytes"]
    return Buckets(
        passes=passes,
        buckets=int(size.max()),
        bytes=None if sizes.isna().any() else int(sizes.max()),
        total_ns=float((full["end_ns"] - full["start_ns"]).sum()) / passes,
        exposed_ns=float(full["exposed_ns"].sum()) / passes,
        last_exposed_ns=float(last["exposed_ns"].sum()) / passes,
        backward_ns=float(last["backward_ns"].mean()),
    )


def backward_passes(trace: Trace) -> Spans:
    """Start of the first and end of the last node of each backward pass, on the host.

    Between two passes an operator of a forward pass begins outside the engine; what is computed
    again inside backward (checkpoints) divides nothing.
    """
    events = trace.events
    nodes = engine_nodes(trace, np.ones(len(events), bool))
    if not len(nodes):
        return Spans(np.empty(0, np.int64), np.empty(0, np.int64))
    nodes = nodes[np.argsort(events.ts[nodes], kind="stable")]
    start, end = events.ts[nodes], np.maximum.accumulate(events.end[nodes])
    answered = np.unique(events.sequence[nodes])
    operators = events.rows(Kind.OPERATOR)
    operators = np.setdiff1d(operators, nodes)
    forward = operators[np.isin(events.sequence[operators], answered[answered >= 0])]
    begins = np.sort(events.ts[forward])
    begins = begins[~contains(union(start, events.end[nodes]), begins)]
    before = np.searchsorted(begins, start)
    first = np.append(True, np.diff(before) > 0)
    at = np.flatnonzero(first)
    return Spans(start[at], end[np.append(at[1:], len(nodes)) - 1])


def _on(
    trace: Trace, device: int, passes: Spans, launches: Launches
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Begin and end of each pass where its buckets run; one without work there keeps the host's."""
    if device == HOST:
        return passes
    events = trace.events
    rows = work_rows(trace, device)
    rows = rows[~np.isin(events.name[rows], trace.name_codes(is_communication))]
    rows = rows[launches.launch[rows] >= 0]
    called = events.ts[launches.launch[rows]]
    owner = np.searchsorted(passes.start, called, "right") - 1
    inside = (owner >= 0) & (called < passes.end[np.maximum(owner, 0)])
    rows, owner = rows[inside], owner[inside]
    begin, end = np.full(len(passes.start), 2**62), np.full(len(passes.start), -(2**62))
    np.minimum.at(begin, owner, events.ts[rows])
    np.maximum.at(end, owner, events.end[rows])
    seen = end > begin
    return np.where(seen, begin, passes.start), np.where(seen, end, passes.end)


def _step_of(steps: Steps | None, at: int) -> int | None:
    if steps is None or not len(steps):
        return None
    place = int(steps.step_of(np.array([at]))[0])
    return None if place < 0 else steps.numbers[place]
