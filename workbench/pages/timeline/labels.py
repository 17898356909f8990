"""What an event on the timeline is called and in which colour: names and categories as codes."""

import re
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from workbench.analysis import causes
from workbench.analysis.collective_names import HOST_RANGE
from workbench.analysis.communication_names import is_communication
from workbench.analysis.steps import STEP_NAME
from workbench.figures.palette import CATEGORIES, STALLS, Category
from workbench.trace.table import Kind, Trace

OWN: dict[str, Category] = {
    "step": Category(label="step", colour="#6A7480"),
    "range": Category(label="named range", colour="#8793A3"),
    **{f"loader:{name}": each for name, each in STALLS.items()},
}
"""Categories that only the timeline draws, beside those of the palette."""

KNOWN: dict[str, Category] = {**CATEGORIES, **OWN}
NAMES: tuple[str, ...] = tuple(KNOWN)
CODE: dict[str, int] = {name: code for code, name in enumerate(NAMES)}

_LAUNCH = re.compile(causes.LAUNCH_PATTERN)
_FORWARD = re.compile(r"(^|\.)forward$", re.IGNORECASE)
_MOST = 1 << 16
"""Characters of a name that are kept; a longer one would be a page of its own."""


class Labels:
    """Pairs of a name and a category, numbered in the order of their first appearance."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, int], int] = {}
        self._shapes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def of(self, name: str, category: str) -> int:
        """The code of one pair."""
        return self._codes.setdefault((name[:_MOST], CODE[category]), len(self._codes))

    def of_events(self, trace: Trace, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """The codes of events of a trace, by name and kind."""
        events = trace.events
        pair = events.name[rows].astype(np.int64) * len(Kind) + events.kind[rows]
        seen, where = np.unique(pair, return_inverse=True)
        codes = np.empty(len(seen), np.int32)
        for at, both in enumerate(seen.tolist()):
            name, kind = trace.names[both // len(Kind)], Kind(both % len(Kind))
            codes[at] = self.of(name, category_of(name, kind))
        return np.asarray(codes[where.reshape(-1)], np.int32)

    def shapes_of(self, trace: Trace, rows: NDArray[np.intp]) -> NDArray[np.int32] | None:
        """Codes of the input shapes of events, -1 for none; ``None`` where none has any."""
        own = trace.events.shapes[rows]
        if not trace.shapes or not (own >= 0).any():
            return None
        seen, where = np.unique(own, return_inverse=True)
        table = self._shapes
        codes = [
            table.setdefault(trace.shapes[at][:_MOST], len(table)) if at >= 0 else -1
            for at in seen.tolist()
        ]
        return np.array(codes, np.int32)[where.reshape(-1)]

    def shapes(self) -> tuple[str, ...]:
        """The texts of the codes of shapes."""
        return tuple(self._shapes)

    def pairs(self) -> tuple[tuple[str, int], ...]:
        """Name and category of every code."""
        return tuple(self._codes)


@cache
def category_of(name: str, kind: Kind) -> str:
    """The category of an event of that name and kind; one of ``NAMES``."""
    told = _BY_KIND.get(kind)
    return _host_category(name, kind) if told is None else told(name)


def _call(name: str) -> str:
    return causes.call_cause(name) or ("launch" if _LAUNCH.search(name) else "host_other")


_BY_KIND: dict[Kind, Callable[[str], str]] = {
    Kind.KERNEL: lambda name: "communication" if is_communication(name) else "compute",
    Kind.MEMCPY: lambda _: "memory",
    Kind.MEMSET: lambda _: "memory",
    Kind.RUNTIME: _call,
    Kind.DRIVER: _call,
    Kind.PYTHON: lambda name: causes.python_cause(name) or "host_python",
    Kind.OVERHEAD: causes.overhead_cause,
    Kind.PROFILER: lambda _: "profiler",
    Kind.SYNC: lambda _: "synchronization",
}
"""Of records whose kind tells enough; operators and ranges are told by their names."""

_RANGES: tuple[tuple[re.Pattern[str], str], ...] = (
    (STEP_NAME, "step"),
    (re.compile(causes.LOADER_PATTERN + r"|^workbench\.input$"), "input"),
    (re.compile(HOST_RANGE.pattern, re.IGNORECASE), "communication"),
    (re.compile(causes.NODE_PATTERN), "backward"),
    (re.compile(causes.OPTIMIZER_PATTERN), "optimizer"),
)


def _host_category(name: str, kind: Kind) -> str:
    """Operators and ranges, and whatever the file does not tell the kind of."""
    known = causes.range_cause(name) or next(
        (category for pattern, category in _RANGES if pattern.match(name)), None
    )
    if known is None and is_communication(name):
        known = "communication"
    if known is None and kind != Kind.OPERATOR and _FORWARD.search(name):
        known = "forward"
    others = {Kind.OPERATOR: "host_operators", Kind.OTHER: "host_other"}
    return known or others.get(kind, "range")
