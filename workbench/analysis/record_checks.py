"""Checks of what the records are: whose ids, which graphs, of categories that nobody knows."""

from collections.abc import Iterator

import numpy as np

from workbench.analysis.devices import work_rows
from workbench.analysis.launches import Launches
from workbench.analysis.overlaps import doubled_host_rows, doubled_rows, is_graph_launch
from workbench.trace.table import Kind, Trace, Violation

LEAST_SHOWN = 0.01
"""Share of the device time from which it is worth telling that it came from graphs."""
_SHOWN = 5
MOSTLY_DOUBLED = 0.4
"""Own choice: where everything is there twice, it is half of the records."""


def shared_ids(trace: Trace) -> Iterator[Violation]:
    """Launch ids that calls of several processes carry: ranks in one file that cannot be told."""
    events = trace.events
    calls = events.rows(Kind.RUNTIME, Kind.DRIVER)
    calls = calls[events.correlation[calls] > 0]
    pids = {lane.pid: number for number, lane in enumerate(trace.lanes)}
    process = np.array([pids[lane.pid] for lane in trace.lanes], np.int64)[events.lane[calls]]
    if len(np.unique(process)) < 2:
        return
    pairs = np.unique(np.stack((events.correlation[calls], process), 1), axis=0)
    ids, owners = np.unique(pairs[:, 0], return_counts=True)
    shared = ids[owners > 1]
    if not len(shared):
        return
    rows = work_rows(trace, None)
    mixed = int(np.isin(events.correlation[rows], shared).sum())
    names = sorted({trace.lanes[code].pid for code in np.unique(process).tolist()})
    yield Violation(
        code="shared_ids",
        message=(
            f"{len(shared):,} launch ids are used by several processes "
            f"({', '.join(names[:_SHOWN])}): the file holds several ranks, and which one launched "
            "a kernel cannot be told. Open the file of each rank; `workbench convert FOLDER "
            "all.json` merges ranks so that ids stay apart."
        ),
        count=len(shared),
        share=mixed / len(rows) if len(rows) else 1.0,
        voids=("steps", "causes", "queue", "operator_device_time"),
    )


def doubled_records(trace: Trace) -> Iterator[Violation]:
    """Records that are there twice: a trace that was written, or merged, twice.

    Without device work most records must be there twice: few may be a wrapper and what it calls.
    """
    work = len(work_rows(trace, None))
    rows = doubled_rows(trace) if work else doubled_host_rows(trace)
    whole = work or len(trace.events.rows(Kind.OPERATOR, Kind.RUNTIME, Kind.DRIVER))
    if not len(rows) or (not work and len(rows) < MOSTLY_DOUBLED * whole):
        return
    told = (
        "device records are there twice, with the same stream"
        if work
        else ("records of the host are there twice, with the same thread")
    )
    yield Violation(
        code="doubled_records",
        message=(
            f"{len(rows):,} of {whole:,} {told}, start, length and name: the trace was written or "
            "merged twice. Sums and counts hold them twice, unions do not. Leave one copy out."
        ),
        count=len(rows),
        share=len(rows) / whole,
        voids=("kernels", "queue"),
    )


def graph_replay(trace: Trace, launches: Launches) -> Iterator[Violation]:
    """Work that was replayed from a graph: one call launched all of it, no operator any of it."""
    events = trace.events
    rows = work_rows(trace, None)
    call = launches.launch[rows]
    graphs = trace.name_codes(is_graph_launch)
    replayed = rows[(call >= 0) & np.isin(events.name[np.maximum(call, 0)], graphs)]
    whole = int(events.dur[rows].sum())
    share = int(events.dur[replayed].sum()) / whole if whole else 0.0
    if share < LEAST_SHOWN:
        return
    calls = len(np.unique(launches.launch[replayed]))
    yield Violation(
        code="graph_replay",
        message=(
            f"{calls:,} graph launches replayed {len(replayed):,} device records: per-operator "
            f"attribution is not available for {share:.0%} of the device time. Kernels are "
            "complete by name."
        ),
        count=calls,
        share=share,
    )


def unknown_categories(trace: Trace) -> Iterator[Violation]:
    """Records whose category says nothing to us beside others that do: listed, never summed."""
    events = trace.events
    unknown = events.category[events.rows(Kind.OTHER)]
    if not len(unknown) or len(unknown) == len(events):
        return
    codes, counts = np.unique(unknown, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    told = [
        f"{trace.categories[codes[i]][:40] or '(none)'} ({counts[i]:,})"
        for i in order[:_SHOWN].tolist()
    ]
    more = ", …" if len(codes) > _SHOWN else ""
    yield Violation(
        code="unknown_categories",
        message=(
            f"Records of categories that are not known are in no sum: {', '.join(told)}{more}."
        ),
        count=len(unknown),
        share=len(unknown) / len(events),
    )
