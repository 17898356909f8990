"""Who holds an allocation, by what surrounds it in the trace and by how long it lives.

Evidence, not guesses: memory taken inside ``Optimizer.step`` that outlives it is the optimizer's
state; taken in backward and alive behind it, a gradient; taken in forward and given back by
backward, an activation of the module it was made in. What ends in the phase and step it began in
is temporary. What nobody saw begin is unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.memory.allocations import AFTER, BEFORE, Allocations
from workbench.analysis.modules import BETWEEN, PREFIX
from workbench.analysis.nesting import Nesting, innermost, nest
from workbench.analysis.phases import PHASES, phases_at
from workbench.analysis.sync_calls import LIBRARY_FRAME
from workbench.trace.table import Kind, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from workbench.analysis.steps import Steps

CATEGORIES = (
    *("weights", "gradients", "optimizer", "activations", "temporary", "input", "unknown"),
)
UNKNOWN = CATEGORIES.index("unknown")
OURS = re.compile(r"(^|/)workbench/(workload|recording|profiling|session|parallel)/")
"""Lines of our own loop are not the user's."""
_HOLDS_OTHERS = ("autograd::", "torch::autograd::", "Optimizer.")
_OF_PHASE = {"forward": "activations", "backward": "gradients", "optimizer": "optimizer"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Owners:
    """One value an allocation; ``module``, ``operator`` and ``line`` are places in ``texts``."""

    category: NDArray[np.int8]
    module: NDArray[np.int64]
    operator: NDArray[np.int64]
    line: NDArray[np.int64]
    texts: tuple[str, ...]
    """The first one is empty: not known."""


def owners_in_trace(trace: Trace, found: Allocations, steps: Steps | None) -> Owners:
    """Who holds each allocation of a trace."""
    begin = _taken(trace, found.taken, found.start)
    end = _taken(trace, found.given, found.end)
    texts: dict[str, int] = {"": 0}
    return Owners(
        category=_categories(found, _phases(trace, begin), _phases(trace, end), steps),
        module=_modules(trace, begin, texts),
        operator=_operators(trace, begin, texts),
        line=_lines(trace, begin, texts),
        texts=tuple(texts),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Taken:
    """Where and when the host took or gave back each allocation, as far as that is ``known``."""

    lane: NDArray[np.int32]
    at: NDArray[np.int64]
    known: NDArray[np.bool_]


def _taken(trace: Trace, row: NDArray[np.int64], at: NDArray[np.int64]) -> _Taken:
    known = row >= 0
    lane = np.where(known, trace.memory.lane[row], -1).astype(np.int32)
    return _Taken(lane=lane, at=at, known=known)


def _phases(trace: Trace, taken: _Taken) -> NDArray[np.int64]:
    phase = np.full(len(taken.at), PHASES.index("unknown"), np.int64)
    phase[taken.known] = phases_at(trace, taken.lane[taken.known], taken.at[taken.known])
    return phase


def _categories(
    found: Allocations, first: NDArray[np.int64], last: NDArray[np.int64], steps: Steps | None
) -> NDArray[np.int8]:
    began, ends = _step_of(found.start, steps), _step_of(found.end, steps)
    brief = (found.end < AFTER) & (found.start > BEFORE) & (began == ends) & (first == last)
    category = np.full(len(found), UNKNOWN, np.int8)
    for phase, name in _OF_PHASE.items():
        category[first == PHASES.index(phase)] = CATEGORIES.index(name)
    category[first == PHASES.index("input")] = CATEGORIES.index("input")
    inside = np.isin(first, [PHASES.index(name) for name in (*_OF_PHASE, "other")])
    category[brief & inside] = CATEGORIES.index("temporary")
    return category


def _step_of(at: NDArray[np.int64], steps: Steps | None) -> NDArray[np.int64]:
    """Which stretch between the starts of steps; without steps all is one."""
    if steps is None:
        return np.zeros(len(at), np.int64)
    return np.searchsorted(steps.start, at, "right")


def _modules(trace: Trace, taken: _Taken, texts: dict[str, int]) -> NDArray[np.int64]:
    """The module that was called, with those around it."""
    nesting = _nest(trace, lambda name: name.startswith(PREFIX), Kind.PYTHON)
    place = _innermost(nesting, taken)
    paths: dict[int, int] = {}

    def path(number: int) -> str:
        parts: list[str] = []
        while number >= 0:
            name = trace.names[trace.events.name[nesting.row[number]]]
            parts.append(name.removeprefix(PREFIX))
            number = int(nesting.parent[number])
        return BETWEEN.join(reversed(parts))

    for number in np.unique(place[place >= 0]).tolist():
        paths[number] = texts.setdefault(path(number), len(texts))
    return np.array([paths.get(number, 0) for number in place.tolist()], np.int64)


def _operators(trace: Trace, taken: _Taken, texts: dict[str, int]) -> NDArray[np.int64]:
    """The outermost operator that is no node of the engine and no step of the optimizer."""
    nesting = _nest(trace, _is_plain, Kind.OPERATOR)
    place = _innermost(nesting, taken)
    up = place.copy()
    if not len(nesting.row):
        return np.zeros(len(place), np.int64)
    while (higher := (up >= 0) & (nesting.parent[np.maximum(up, 0)] >= 0)).any():
        up[higher] = nesting.parent[up[higher]]
    return _named(trace, nesting, up, texts)


def _lines(trace: Trace, taken: _Taken, texts: dict[str, int]) -> NDArray[np.int64]:
    """The innermost Python function of the user's, where stacks were recorded."""
    nesting = _nest(trace, _is_own, Kind.PYTHON)
    return _named(trace, nesting, _innermost(nesting, taken), texts)


def _is_plain(name: str) -> bool:
    return "::" in name and not name.startswith(_HOLDS_OTHERS)


def _is_own(name: str) -> bool:
    plain = not name.startswith(PREFIX) and ".py(" in name
    return plain and LIBRARY_FRAME.search(name) is None and OURS.search(name) is None


def _nest(trace: Trace, wanted: Callable[[str], bool], kind: Kind) -> Nesting:
    events = trace.events
    codes = trace.name_codes(wanted)
    rows = np.flatnonzero((events.kind == kind) & np.isin(events.name, codes))
    return nest(rows, events.lane[rows], events.ts[rows], events.end[rows])


def _innermost(nesting: Nesting, taken: _Taken) -> NDArray[np.int64]:
    found = np.full(len(taken.at), -1, np.int64)
    if len(nesting.row):
        known = taken.known
        found[known] = innermost(nesting, taken.lane[known], taken.at[known])
    return found


def _named(
    trace: Trace, nesting: Nesting, place: NDArray[np.int64], texts: dict[str, int]
) -> NDArray[np.int64]:
    if not len(nesting.row):
        return np.zeros(len(place), np.int64)
    code = np.where(place >= 0, trace.events.name[nesting.row[np.maximum(place, 0)]], -1)
    known = {
        number: texts.setdefault(trace.names[number], len(texts))
        for number in np.unique(code[code >= 0]).tolist()
    }
    return np.array([known.get(number, 0) for number in code.tolist()], np.int64)
