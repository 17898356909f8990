"""How TensorBoard's profiler plugin spells what a trace holds: categories, threads and arrows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.analysis.collective_names import BACKEND_RANGE
from workbench.analysis.steps import step_codes
from workbench.trace.table import DEVICE_WORK, Flows, Kind, Lane, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

CATEGORIES: dict[Kind, str] = {
    Kind.OPERATOR: "cpu_op",
    Kind.ANNOTATION: "host_annotation",
    Kind.RUNTIME: "Runtime",
    Kind.DRIVER: "Runtime",
    Kind.PYTHON: "python_function",
    Kind.KERNEL: "Kernel",
    Kind.MEMCPY: "gpu_memcpy",
    Kind.MEMSET: "gpu_memset",
    Kind.DEVICE_ANNOTATION: "device_annotation",
    Kind.SYNC: "synchronization",
    Kind.OVERHEAD: "overhead",
    Kind.PROFILER: "Trace",
    Kind.OTHER: "other",
}
"""How the plugin spells each kind. Words of ours are nothing to it, such as those of annotations:
the device's mirror of a step would be another step."""
STEP = CALL = "user_annotation"
"""What it reads steps and collectives from."""
OPTIMIZER = "Optimizer."


class Spelled:
    """Names and categories of a trace as they become."""

    def __init__(self, trace: Trace) -> None:
        self.names = list(trace.names)
        self.shapes = list(trace.shapes)
        self.types = list(trace.types)
        self.categories = list(dict.fromkeys((*CATEGORIES.values(), STEP)))
        events = trace.events
        codes = np.array(
            [self.categories.index(CATEGORIES.get(Kind(k), "other")) for k in range(len(Kind))],
            np.int16,
        )
        self.category = codes[events.kind]
        self.name = events.name.copy()
        optimizer = trace.name_codes(lambda name: name.startswith(OPTIMIZER))
        self.call_operators(
            np.flatnonzero(np.isin(events.name, optimizer) & events.of_kind(Kind.ANNOTATION))
        )
        told = trace.name_codes(lambda name: bool(BACKEND_RANGE.match(name)))
        anew = np.concatenate((step_codes(trace), told))
        marked = np.isin(events.name, anew) & events.of_kind(Kind.OPERATOR)
        self.category[marked] = self.code("host_annotation")

    def code(self, category: str) -> int:
        """The number of a category."""
        return self.categories.index(category)

    def call_operators(self, rows: Rows) -> None:
        """Give rows the category of operators."""
        self.category[rows] = self.code("cpu_op")

    def rename(self, rows: Rows, names: Sequence[str]) -> None:
        """Give each row its new name."""
        for row, name in zip(rows.tolist(), names, strict=True):
            self.name[row] = self.name_code(name)

    def name_code(self, name: str) -> int:
        """The number of a name; a new one where it is not in the trace."""
        return code_of(self.names, name)

    def columns(self) -> dict[str, Any]:
        """The columns that have changed."""
        return {"category": self.category, "name": self.name}


def code_of(table: list[str], text: str) -> int:
    """The place of a text in a table, which grows where it is not there."""
    if text not in table:
        table.append(text)
    return table.index(text)


def plain_lanes(trace: Trace) -> tuple[Lane, ...]:
    """Threads get numbers where they have names, and devices their number as process."""
    events = trace.events
    work = events.of_kind(*DEVICE_WORK)
    device = dict(zip(events.lane[work].tolist(), events.device[work].tolist(), strict=True))
    found = []
    for number, lane in enumerate(trace.lanes):
        tid = lane.tid if lane.tid.lstrip("-").isdigit() else str(1_000_000 + number)
        pid = lane.pid
        if number in device and not pid.lstrip("-").isdigit():
            pid = str(device[number])
        found.append(replace(lane, pid=pid, tid=tid, thread=lane.thread or lane.tid))
    return tuple(found)


def arrows(trace: Trace, spelled: Spelled) -> Flows:
    """Arrows keep their own category, which the plugin reads for nothing."""
    old = [code_of(spelled.categories, name) for name in trace.categories]
    codes = np.array(old or [0], np.int16)
    return replace(trace.flows, category=codes[trace.flows.category])
