"""A file that holds several ranks becomes one trace per rank.

Tools that merge ranks put the rank into each process: ``[TP-0] 1234`` as its id, ``rank 0 python``
as its name. Each part has its own ids again, so that ranks whose ids collide do not mix.
"""

import re
from dataclasses import replace

import numpy as np

from workbench.trace.rows import moments, taken
from workbench.trace.table import Trace

_LABELS = (
    re.compile(r"^\s*\[([^\]]*\d[^\]]*)\]"),
    re.compile(r"^\W*(rank[ _-]?\d+)(?!\d)", re.I),
)
_NUMBER = re.compile(r"\d{1,9}")
_TABLES = ("flows", "memory", "instants", "counters")


def ranks_in_file(trace: Trace) -> tuple[str, ...]:
    """The labels of the ranks that one file holds, in order; empty when it holds only one."""
    with_events = set(np.unique(trace.events.lane).tolist())
    found = {label for code, label in enumerate(_labels(trace)) if label and code in with_events}
    return tuple(sorted(found, key=_order)) if len(found) > 1 else ()


def split_ranks(trace: Trace) -> tuple[Trace, ...]:
    """One trace per rank of a file that holds several; else the trace itself.

    ``rank`` is the number in the label where each label has one of its own, else its place.
    Processes without a label belong to no rank and are left out.
    """
    labels = ranks_in_file(trace)
    if not labels:
        return (trace,)
    numbers = [_NUMBER.findall(label) for label in labels]
    told = [int(found[0]) for found in numbers if len(found) == 1]
    ranks = told if len(set(told)) == len(labels) else list(range(len(labels)))
    of_lane = np.array([labels.index(x) if x in labels else -1 for x in _labels(trace)])
    return tuple(
        replace(_part(trace, of_lane == place), rank=rank, world_size=len(labels))
        for place, rank in enumerate(ranks)
    )


def _part(trace: Trace, lanes: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Trace:
    events = trace.events
    rows = np.flatnonzero(lanes[events.lane])
    first = int(events.ts[rows[0]]) if len(rows) else 0
    part = taken(trace, rows, ts=events.ts[rows] - first)
    tables = {name: getattr(trace, name) for name in _TABLES}
    used = set(np.unique(part.events.device).tolist())
    return replace(
        part,
        **{name: moments(table, lanes[table.lane], first) for name, table in tables.items()},
        devices=tuple(device for device in trace.devices if device.index in used),
        base_ns=None if trace.base_ns is None else trace.base_ns + first,
    )


def _labels(trace: Trace) -> list[str]:
    """The rank that each lane's process names, or nothing."""
    return [_label(lane.process) or _label(lane.pid) for lane in trace.lanes]


def _label(text: str) -> str:
    matches = (pattern.search(text) for pattern in _LABELS)
    return next((match.group(1) for match in matches if match), "")


def _order(label: str) -> tuple[list[int], str]:
    return [int(number) for number in _NUMBER.findall(label)], label
