"""The most memory in use in each phase of the loop, validation among them.

A peak is reached when something is taken, so that the live bytes after each request, by the phase
that asked, tell every phase's peak. Validation is what runs inside a range of the user's of such a
name (``with torch.profiler.record_function("validation")``); whether it keeps what only backward
needs is told by the numbers that operators have under autograd and not under ``no_grad``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.intervals import contains, union
from workbench.analysis.phases import PHASES, phases_at
from workbench.trace.table import Kind, Trace

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from workbench.analysis.intervals import Spans
    from workbench.analysis.memory.allocations import Allocations, Curve

VALIDATION = "validation"
_RANGE = re.compile(
    r"^(workbench\.)?(val|valid|validate|validation|eval|evaluate|evaluation)\b", re.I
)
PHASE_PEAK_COLUMNS = ("phase", "peak_bytes", "at_ns", "allocations", "autograd")


def phase_peaks(trace: Trace, found: Allocations, device: int, curve: Curve) -> pd.DataFrame | None:
    """One row a phase that asked a memory for anything; ``None`` where no request was followed.

    ``autograd`` tells, of validation, whether its operators were recorded for a backward pass.
    """
    import pandas as pd

    mine = found.of(device)
    mine = mine[found.taken[mine] >= 0]
    if not len(mine):
        return None
    at = found.start[mine]
    phase = phases_at(trace, trace.memory.lane[found.taken[mine]], at).astype(np.int64)
    spans = _validation(trace)
    names = [*PHASES, VALIDATION]
    phase[_inside(spans, at)] = names.index(VALIDATION)
    level = curve.at(at)
    rows = []
    for code in np.unique(phase).tolist():
        here = np.flatnonzero(phase == code)
        worst = here[int(level[here].argmax())]
        grad = _autograd(trace, spans) if names[code] == VALIDATION else None
        rows.append((names[code], int(level[worst]), int(at[worst]), len(here), grad))
    table = pd.DataFrame(rows, columns=list(PHASE_PEAK_COLUMNS)).astype({"autograd": "boolean"})
    return table.sort_values("peak_bytes", ascending=False, ignore_index=True, kind="stable")


def _validation(trace: Trace) -> Spans:
    events = trace.events
    codes = trace.name_codes(lambda name: _RANGE.match(name) is not None)
    rows = np.flatnonzero((events.kind == Kind.ANNOTATION) & np.isin(events.name, codes))
    return union(events.ts[rows], events.end[rows])


def _inside(spans: Spans, at: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(contains(spans, at), bool)


def _autograd(trace: Trace, spans: Spans) -> bool | None:
    """Whether operators inside have numbers that a node of the engine could answer."""
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    rows = rows[_inside(spans, events.ts[rows])]
    if not len(rows) or not (events.sequence >= 0).any():
        return None
    return bool((events.sequence[rows] >= 0).any())
