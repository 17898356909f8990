"""Which module every operator of a trace belongs to, told by the trace or by one more step.

A trace holds modules where stacks were recorded. Where one more step was run with hooks, its calls
are met again in the steps of the trace: the k-th call of an operator with the same shapes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.modules import BETWEEN, answered, module_records, places_of
from workbench.analysis.nesting import ancestors, innermost
from workbench.analysis.steady import counted_ranges, inside

if TYPE_CHECKING:
    from workbench.analysis.costs.calls import CostedCalls
    from workbench.analysis.steps import Steps
    from workbench.trace.table import Trace

Values = NDArray[np.int64]
Path = tuple[str, ...]
FORWARD, BACKWARD, OPTIMIZER = 0, 1, 2
_PHASES = {"f": FORWARD, "b": BACKWARD, "o": OPTIMIZER}
_PLACE = re.compile(r"(\d+)([fbo])(\d*)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Placed:
    """Per record of an operator its module and its phase."""

    paths: tuple[Path, ...]
    module: Values
    """Position in ``paths``; -1 outside any module, or not known."""
    phase: Values
    """Forward, backward, optimizer; -1 where it is not known."""
    source: str


def placed_by_trace(trace: Trace, calls: CostedCalls) -> Placed | None:
    """By the module records of the trace; ``None`` where it holds none."""
    nesting = module_records(trace, None)
    if nesting is None:
        return None
    events, row = trace.events, calls.found.nesting.row.astype(np.int64)
    place, paths = places_of(trace, nesting)
    holder = innermost(nesting, events.lane[row], events.ts[row]).astype(np.int64)
    rest = np.flatnonzero(holder < 0)
    behind = np.full(len(row), -1, np.int64)
    behind[rest] = answered(trace, nesting, row[rest])
    found = np.where(holder >= 0, holder, behind)
    phase = np.where(holder >= 0, FORWARD, np.where(behind >= 0, BACKWARD, -1))
    return Placed(
        paths=tuple(tuple(path.split(BETWEEN)) for path in paths),
        module=np.where(found >= 0, place[np.maximum(found, 0)], -1),
        phase=phase.astype(np.int64),
        source="the module records of the trace",
    )


def placed_by_step(
    calls: CostedCalls,
    steps: Steps | None,
    noted: Sequence[Mapping[str, Any]],
    modules: Sequence[str],
) -> Placed | None:
    """By the calls of one more step; ``None`` where the steps of the trace do not make the same."""
    ranges = counted_ranges(steps)
    if ranges is None or not len(calls.group):
        return None
    sequences = _sequences(noted)
    start, parent = calls.found.nesting.start, calls.found.nesting.parent
    known = np.array([(name, text or "") in sequences for name, text in calls.keys], bool)
    seen = known[calls.group] & inside(ranges, start) & (calls.found.calls > 0)
    within = np.zeros(len(seen), bool)  # what runs inside a call does not come to the dispatcher
    for at, above in ancestors(parent):
        within[at] |= seen[above]
    seen &= ~within
    module = np.full(len(seen), -1, np.int64)
    phase = np.full(len(seen), -1, np.int64)
    step = np.searchsorted(ranges[0], start, "right") - 1
    for key, sequence in sequences.items():
        groups = [
            number for number, each in enumerate(calls.keys) if (each[0], each[1] or "") == key
        ]
        rows = np.flatnonzero(seen & np.isin(calls.group, groups))
        rows = rows[np.lexsort((start[rows], step[rows]))]
        counts = np.bincount(step[rows], minlength=len(ranges[0]))
        same = counts[step[rows]] == len(sequence)
        at = np.arange(len(rows)) - np.concatenate(([0], np.cumsum(counts)))[step[rows]]
        rows, at = rows[same], at[same]
        phase[rows] = np.array([each[0] for each in sequence], np.int64)[at]
        module[rows] = np.array([each[1] for each in sequence], np.int64)[at]
    if not (phase >= 0).any():
        return None
    _spread(parent, module, phase)
    return Placed(
        paths=tuple(tuple(path.split(".")) for path in modules),
        module=np.where(module < len(modules), module, -1),
        phase=phase,
        source="the hooks of one more step",
    )


def _sequences(noted: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Phases and modules of the calls by operator and shapes, in the order of the step."""
    found: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for call in noted:
        places = _PLACE.findall(str(call.get("at", "")))
        found.setdefault((str(call.get("name")), str(call.get("key"))), []).extend(
            (int(at), _PHASES[phase], int(module) if module else -1) for at, phase, module in places
        )
    return {key: [each[1:] for each in sorted(calls)] for key, calls in found.items() if calls}


def _spread(parent: NDArray[np.int32], module: Values, phase: Values) -> None:
    """What runs inside a call is where it is; what is around calls of one module is there too."""
    placed = phase >= 0
    code = np.where(placed, module * 4 + phase, 0)
    for at, above in ancestors(parent):  # the nearest call around it
        taking = ~placed[at] & placed[above] & (phase[at] < 0)
        module[at[taking]], phase[at[taking]] = module[above[taking]], phase[above[taking]]
    least = np.full(len(code), np.iinfo(np.int64).max)
    most = np.full(len(code), np.iinfo(np.int64).min)
    for at, above in ancestors(parent):
        inner = placed[at] & ~placed[above]
        np.minimum.at(least, above[inner], code[at[inner]])
        np.maximum.at(most, above[inner], code[at[inner]])
    agreed = (phase < 0) & (least == most)
    phase[agreed] = least[agreed] % 4
    module[agreed] = least[agreed] // 4
