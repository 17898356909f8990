"""What a trace tells outright about waiting: which stream, and behind which recorded event.

torch writes it with ``enable_cuda_sync_events``; other traces have the calls alone, from which
``waits`` and ``streams`` conclude what they may.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.evidence import Evidence
from workbench.analysis.host_records import CALLS
from workbench.analysis.nesting import Times
from workbench.trace.table import Kind

ANY = -1


class Told(NamedTuple):
    """What the records of kind SYNC tell, one entry each."""

    call: Times
    """Row of the host's call, or -1."""
    stream: Times
    """The stream that waits or, of a host's wait, the stream waited for; -1: not told."""
    source: Times
    """The stream on which the event was recorded; -1: not told."""
    until: Times
    """Work launched before this instant is waited for: the call that recorded the event."""


def told_waits(evidence: Evidence) -> Told:
    """The recorded waits of a trace; usually there are none."""
    trace, events = evidence.trace, evidence.trace.events
    rows = events.rows(Kind.SYNC)
    calls = events.rows(*CALLS)
    calls = calls[events.correlation[calls] > 0]
    if not len(rows) or not len(calls):
        nothing = np.empty(0, np.int64)
        return Told(nothing, nothing, nothing, nothing)
    calls = calls[np.argsort(events.correlation[calls], kind="stable")]
    call = _found(calls, events.correlation[calls], events.correlation[rows])
    source, recorded_by = np.full(len(rows), ANY, np.int64), np.full(len(rows), ANY, np.int64)
    place = np.searchsorted(rows, trace.waits.row)
    source[place] = trace.waits.stream
    recorded_by[place] = trace.waits.recorded_by
    recorder = _found(calls, events.correlation[calls], recorded_by)
    known = np.where(recorder >= 0, recorder, np.maximum(call, 0))
    stream = np.where(events.stream[rows] >= 0, events.stream[rows], ANY).astype(np.int64)
    return Told(call, stream, source, events.ts[known])


def _found(
    calls: NDArray[np.intp], correlation: NDArray[np.int64], wanted: NDArray[np.int64]
) -> Times:
    place = np.minimum(np.searchsorted(correlation, wanted), len(calls) - 1)
    good = (correlation[place] == wanted) & (wanted > 0)
    return np.where(good, calls[place], -1).astype(np.int64)
