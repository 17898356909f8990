"""What an event on the timeline is called and in which colour: names and categories as codes."""

import re
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

_LOADER = re.compile(causes.LOADER_PATTERN + r"|^workbench\.input$")
_NODE = re.compile(causes.NODE_PATTERN)
_OPTIMIZER = re.compile(causes.OPTIMIZER_PATTERN)
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
        return codes[where.reshape(-1)]

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
    if kind == Kind.KERNEL:
        return "communication" if is_communication(name) else "compute"
    if kind in (Kind.MEMCPY, Kind.MEMSET):
        return "memory"
    if kind in (Kind.RUNTIME, Kind.DRIVER):
        return causes.call_cause(name) or ("launch" if _LAUNCH.search(name) else "host_other")
    if kind == Kind.PYTHON:
        return causes.python_cause(name) or "host_python"
    if kind == Kind.OVERHEAD:
        return causes.overhead_cause(name)
    if kind == Kind.PROFILER:
        return "profiler"
    if kind == Kind.SYNC:
        return "synchronization"
    return _host_category(name, kind)


def _host_category(name: str, kind: Kind) -> str:
    """Operators and ranges, and whatever the file does not tell the kind of."""
    if STEP_NAME.match(name):
        return "step"
    if _LOADER.search(name):
        return "input"
    if cause := causes.range_cause(name):
        return cause
    if HOST_RANGE.match(name) or is_communication(name):
        return "communication"
    if _NODE.search(name):
        return "backward"
    if _OPTIMIZER.search(name):
        return "optimizer"
    if kind == Kind.OPERATOR:
        return "host_operators"
    if _FORWARD.search(name):
        return "forward"
    return "host_other" if kind == Kind.OTHER else "range"
