"""Why a device is idle: every nanosecond of its idle time gets exactly one cause.

The work that ends a gap is followed back to the call that launched it and to the thread that made
the call. Before the call the thread's records decide, between its start and end the launch
itself, after it the device. The rules and their order are those of ``docs/metrics.md``, "Cause of
idle"; the names by which records are recognised are tables in ``causes``.
"""

from dataclasses import dataclass, replace

import numpy as np

from workbench.analysis.causes import CAUSE_CODE, CAUSES, HOST_ORDER
from workbench.analysis.devices import work_rows
from workbench.analysis.evidence import Evidence, gather_evidence
from workbench.analysis.gaps import IdleGaps, idle_gaps
from workbench.analysis.host_records import HostRecords
from workbench.analysis.idle_pieces import Cuts, Parts, described, host_parts
from workbench.analysis.kept_pieces import IdlePieces
from workbench.analysis.launches import Launches
from workbench.analysis.nesting import distinct
from workbench.analysis.ranges import Range
from workbench.analysis.steps import Steps
from workbench.analysis.synchronization import waited
from workbench.analysis.unrecorded_work import unseen_from
from workbench.trace.table import Kind, Trace

ROUNDING_NS = 2
"""Gaps up to this length come from rounding: idle time, but not counted as gaps."""
OWN_RANGES = "workbench."
"""Ranges of our own capture, whose probe marks every garbage collection."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Idle:
    """The idle time of one device in a range, explained."""

    device: int
    range: Range
    total: int
    """Idle time in ns; the causes sum to it exactly."""
    gaps: int
    """Number of gaps longer than rounding."""
    largest: int
    """Length of the longest gap in ns."""
    by_cause: dict[str, int | None]
    """Nanoseconds per cause, in the order of ``CAUSES``; ``None``: this trace cannot show it."""
    pieces: IdlePieces
    first_use: int
    """Part of allocation and kernel_loading in the first complete step; steady state lacks it."""
    unrecorded: int
    """Part of ``unknown`` that is unrecorded device work: launched, yet begun far too late."""
    uncertainty: int
    """Clock offset between host and device in ns that was applied, without its sign."""


def attribute_idle(
    trace: Trace,
    device: int,
    range: Range,  # noqa: A002
    steps: Steps | None,
    launches: Launches,
    *,
    evidence: Evidence | None = None,
) -> Idle:
    """Say why a device was idle in a range.

    Args:
        trace: The event table.
        device: Index of the device.
        range: A stretch on the device's clock.
        steps: The steps of the loop, if the trace marks any.
        launches: The join of device work to its launching calls.
        evidence: From ``gather_evidence``, to save its work when asking again.
    """
    offset = launches.clock_offset.get(device, 0)
    span = range.shifted(offset)
    if _explainable(trace, launches, device):
        evidence = evidence or gather_evidence(trace, launches, steps)
        absent = _absent(trace, evidence.records)
    else:
        evidence = None
        absent = frozenset(CAUSES) - {"unknown"}
    pieces = IdlePieces.joined(
        described(
            trace,
            _explained(evidence, gaps),
            gaps,
            span,
            steps=steps,
            evidence=evidence,
            launch_of=launches.launch,
        )
        for gaps in idle_gaps(trace, device, range, launches)
    )
    if offset:
        pieces = replace(pieces, gap_start=pieces.gap_start - offset)
    gap_lengths = pieces.gap_length
    return Idle(
        device=device,
        range=range,
        total=int(gap_lengths.sum()),
        gaps=int((gap_lengths > ROUNDING_NS).sum()),
        largest=int(gap_lengths.max(initial=0)),
        by_cause={
            cause: None if cause in absent else pieces.time(pieces.cause == code)
            for cause, code in CAUSE_CODE.items()
        },
        pieces=pieces,
        first_use=pieces.time(pieces.first_use),
        unrecorded=pieces.time(pieces.unrecorded),
        uncertainty=abs(offset),
    )


def _explainable(trace: Trace, launches: Launches, device: int) -> bool:
    """Whether the clocks compare and any work of the device has a launch record."""
    rows = work_rows(trace, device)
    return launches.clock_ok.get(device, True) and bool((launches.launch[rows] >= 0).any())


def _explained(evidence: Evidence | None, gaps: IdleGaps) -> Parts:
    """Cut every gap at its launching call and give each part its causes."""
    if evidence is None:
        return Parts.unknown(Cuts(np.arange(len(gaps.start)), gaps.start, gaps.end))
    unlaunched = np.flatnonzero(gaps.launch < 0)
    launched = np.flatnonzero(gaps.launch >= 0)
    start, end = gaps.start[launched], gaps.end[launched]
    unseen = Cuts(launched, unseen_from(gaps)[launched], end)
    end = unseen.start
    call_start = np.clip(gaps.call_start[launched], start, end)
    call_end = np.clip(gaps.call_end[launched], call_start, end)
    before = Cuts(launched, start, call_start)
    during = Cuts(launched, call_start, call_end)
    after = Cuts(launched, call_end, end)
    return Parts.joined(
        Parts.unknown(Cuts(unlaunched, gaps.start[unlaunched], gaps.end[unlaunched])),
        _before_call(evidence, gaps, before),
        _in_call(evidence, gaps, during),
        _after_call(gaps, after),
        Parts.unknown(unseen, unrecorded=True),
    )


def _after_call(gaps: IdleGaps, cuts: Cuts) -> Parts:
    """Rule 2: the device takes what was launched."""
    queued = gaps.call_end[cuts.gap] <= gaps.start[cuts.gap]
    cause = np.where(queued, CAUSE_CODE["kernel_gap"], CAUSE_CODE["launch"]).astype(np.uint8)
    host = np.where(cause == CAUSE_CODE["launch"], gaps.launch[cuts.gap], -1)
    return Parts.of(cuts, cause, host=host)


def _in_call(evidence: Evidence, gaps: IdleGaps, cuts: Cuts) -> Parts:
    """Rule 3, after rule 7: the launching call itself, which may load its kernel."""
    parts = host_parts(evidence, gaps, cuts)
    kept = np.isin(parts.cause, [CAUSE_CODE["profiler"], CAUSE_CODE["kernel_loading"]])
    return parts.with_cause(
        np.where(kept, parts.cause, CAUSE_CODE["launch"]).astype(np.uint8),
        host=np.where(kept, parts.host, gaps.launch[parts.gap]),
    )


def _before_call(evidence: Evidence, gaps: IdleGaps, cuts: Cuts) -> Parts:
    """Rules 3 to 11: what the launching thread did before it called."""
    parts = host_parts(evidence, gaps, cuts)
    behind = waited(evidence, gaps, cuts)
    parts = parts.split_at_own(behind.start).split_at_own(behind.end)
    late = (parts.start >= behind.start[parts.gap]) & (parts.end <= behind.end[parts.gap])
    return parts.with_cause(
        np.where(late, CAUSE_CODE["synchronization"], parts.cause).astype(np.uint8),
        host=np.where(late, behind.call[parts.gap], parts.host),
    )


def _absent(trace: Trace, records: HostRecords) -> frozenset[str]:
    """The causes that this trace could not show even if they had been there."""
    events = trace.events
    seen = {HOST_ORDER[code] for code in distinct(records.own)}
    absent = {"input", "garbage_collection"} - seen
    if any(name.startswith(OWN_RANGES) for name in trace.names):
        absent.discard("garbage_collection")
    if not len(events.rows(Kind.PYTHON)):
        absent.add("host_python")
    return frozenset(absent)
