"""Calls in which the host waits for the device, by the operator or line that makes them.

Two times belong to such a call, and only one is lost: how long the host waits in it, and how long
the device then idles because the host comes late. A call that waits long but leaves no idle time
costs nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import CAUSE_CODE
from workbench.analysis.evidence import Evidence
from workbench.analysis.host_records import OPERATOR, SYNCHRONIZATION
from workbench.analysis.idle import Idle
from workbench.analysis.idle_pieces import climbed
from workbench.analysis.nesting import Rows, innermost
from workbench.analysis.steady import counted_ranges, inside, steady_numbers
from workbench.analysis.steps import Steps, step_codes
from workbench.trace.table import Kind

LIBRARY_FRAME = re.compile(
    r"(^|/)(torch|torchvision|torchaudio|numpy|site-packages|dist-packages|lib/python3[.\d]*)/"
    r"|^<|^nn\.Module: |^threading\.py|^contextlib\.py"
)
"""Python stack records that are not the user's own line."""


@dataclass(frozen=True, kw_only=True)
class SyncSite:
    """All blocking calls that one place of the program makes in the steps that count."""

    call: str
    """The runtime call, such as ``cudaStreamSynchronize``."""
    operator: str
    """The innermost operator that makes it, or the user's range; empty where nothing is open."""
    within: str
    """The outermost operator around it; empty where that is the same."""
    source: str
    """The user's own source line, where stacks were recorded."""
    calls: int
    wait_ns: int
    """How long the host is inside the calls."""
    idle_ns: int
    """How long devices idle because of them: what removing them can save at most."""


@dataclass(frozen=True, kw_only=True)
class SyncCalls:
    """The blocking calls of a trace, the most costly place first."""

    sites: tuple[SyncSite, ...]
    steps: int
    """Steps looked at; 0 without steps."""
    time_ns: int
    """Their length on the host; without steps the time between first and last record."""


def sync_calls(
    evidence: Evidence, idle: Sequence[Idle], steps: Steps | None, time_ns: int
) -> SyncCalls:
    """Find the blocking calls inside the steps that count.

    Args:
        evidence: The host side of the trace.
        idle: The idle time of every device, explained.
        steps: The steps of the loop.
        time_ns: Length of the window, for a trace without steps.
    """
    trace, records = evidence.trace, evidence.records
    nesting = records.nesting
    own = records.own == SYNCHRONIZATION
    at = np.flatnonzero(own & (records.cause == SYNCHRONIZATION)).astype(np.int32)
    parent = nesting.parent[at]
    at = at[(parent < 0) | ~own[np.maximum(parent, 0)]]
    ranges = counted_ranges(steps)
    at = at[inside(ranges, nesting.start[at])]
    lost = _idle_by_row(len(trace.events), idle, steps)
    row = nesting.row[at]
    inner = climbed(nesting, at, lambda p, _: records.own[p] == OPERATOR)
    outer = _outermost(evidence, inner)
    names = (trace.events.name[row], _named(evidence, inner), _named(evidence, outer))
    source = _source(evidence, at)
    user = _user_range(evidence, at, inner)
    keys = np.stack([*names, source, user]).T if len(at) else np.empty((0, 5), np.int64)
    groups, index = np.unique(keys, axis=0, return_inverse=True)
    sites = []
    for number, (call, operator, within, line, place) in enumerate(groups.tolist()):
        mine = index.ravel() == number
        sites.append(
            SyncSite(
                call=trace.names[call],
                operator=_text(evidence, operator if operator >= 0 else place),
                within=_text(evidence, within if within != operator else -1),
                source=_text(evidence, line),
                calls=int(mine.sum()),
                wait_ns=int((nesting.end[at] - nesting.start[at])[mine].sum()),
                idle_ns=int(lost[row[mine]].sum()),
            )
        )
    sites.sort(key=lambda site: (-site.idle_ns, -site.wait_ns, site.call))
    spent = time_ns if ranges is None else int((ranges[1] - ranges[0]).sum())
    return SyncCalls(
        sites=tuple(sites), steps=0 if ranges is None else len(ranges[0]), time_ns=spent
    )


def _idle_by_row(count: int, idle: Sequence[Idle], steps: Steps | None) -> NDArray[np.int64]:
    """Per event row, the idle time that the attribution books on it as synchronization."""
    lost = np.zeros(count, np.int64)
    numbers = steady_numbers(steps)
    for each in idle:
        pieces = each.pieces
        mine = (pieces.cause == CAUSE_CODE["synchronization"]) & (pieces.host >= 0)
        if numbers:
            mine &= np.isin(pieces.step, numbers)
        np.add.at(lost, pieces.host[mine], pieces.length[mine])
    return lost


def _outermost(evidence: Evidence, position: Rows) -> Rows:
    """The highest operator above each position, itself included; -1 stays."""
    nesting, own = evidence.records.nesting, evidence.records.own
    found = position.copy()
    above = np.where(position >= 0, nesting.parent[np.maximum(position, 0)], -1)
    while (above >= 0).any():
        index = np.flatnonzero(above >= 0)
        better = index[own[above[index]] == OPERATOR]
        found[better] = above[better]
        above[index] = nesting.parent[above[index]]
    return found


def _named(evidence: Evidence, position: Rows) -> NDArray[np.int64]:
    rows = evidence.records.nesting.row
    names = evidence.trace.events.name
    if not len(rows):
        return np.full(len(position), -1, np.int64)
    return np.where(position >= 0, names[rows[np.maximum(position, 0)]], -1).astype(np.int64)


def _source(evidence: Evidence, position: Rows) -> NDArray[np.int64]:
    """Name code of the innermost Python record that is no library's."""
    trace, nesting = evidence.trace, evidence.records.nesting
    python = trace.events.kind[nesting.row] == Kind.PYTHON
    if not python.any():
        return np.full(len(position), -1, np.int64)
    library = trace.name_codes(lambda name: LIBRARY_FRAME.search(name) is not None)
    own = python & ~np.isin(trace.events.name[nesting.row], library)
    return _named(evidence, climbed(nesting, position, lambda p, _: own[p]))


def _user_range(evidence: Evidence, position: Rows, inner: Rows) -> NDArray[np.int64]:
    """Name code of the innermost user range around calls that no operator makes."""
    nesting, ranges = evidence.records.nesting, evidence.records.ranges
    found = np.full(len(position), -1, np.int64)
    bare = np.flatnonzero(inner < 0)
    if not len(bare) or not len(ranges.row):
        return found
    at = innermost(ranges, nesting.lane[position[bare]], nesting.start[position[bare]])
    names = evidence.trace.events.name[ranges.row]
    step = np.isin(names, step_codes(evidence.trace))
    at = climbed(ranges, at, lambda p, _: ~step[p])
    known = at >= 0
    found[bare[known]] = evidence.trace.events.name[ranges.row[at[known]]]
    return found


def _text(evidence: Evidence, code: int) -> str:
    return evidence.trace.names[code] if code >= 0 else ""
