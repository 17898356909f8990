"""Without a device the loop's thread is the path: each piece of its time is what it is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import CAUSE_CODE, CAUSES
from workbench.analysis.evidence import Evidence
from workbench.analysis.host import PARTS, claimed_spans
from workbench.analysis.host_records import OPERATOR
from workbench.analysis.idle_pieces import climbed
from workbench.analysis.intervals import contains
from workbench.analysis.nesting import Times
from workbench.analysis.ranges import Range
from workbench.analysis.replay.host import host_thread
from workbench.analysis.replay.path import PATH_KINDS, CriticalPath
from workbench.analysis.replay.scenario import Scenario
from workbench.analysis.replay.span import Span
from workbench.analysis.steps import Steps

OWN_KIND = (
    "kernel_loading",
    "allocation",
    "compilation",
    "profiler",
    "synchronization",
    "garbage_collection",
)
"""Causes that are shown for themselves, in whatever part of a step they occur."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ThreadReplay:
    """The loop's thread over some steps in pieces; columns of equal length."""

    numbers: tuple[int, ...]
    start: Times
    end: Times
    kind: NDArray[np.uint8]
    """Place in ``PATH_KINDS``."""
    row: NDArray[np.int64]
    operator: NDArray[np.int64]
    """Code of the name of the innermost operator, or -1."""
    lane: int
    names: tuple[str, ...]
    busy: int = 0
    """No device works."""

    @property
    def measured(self) -> int:
        """The recorded length of the steps together, in ns."""
        return int((self.end - self.start).sum())

    def saving(self, scenario: Scenario) -> int:
        """How much less time the steps together would take at most, in ns."""
        return max(self.measured - self.length(scenario), 0)

    def length(self, scenario: Scenario) -> int:
        """How long the steps together would take at least, in ns."""
        length = (self.end - self.start).astype(float)
        for name, times in scenario.faster.items():
            length[np.isin(self.operator, self._codes(name))] /= times
        for start, end in scenario.gone:
            within = np.minimum(self.end, end) - np.maximum(self.start, start)
            length -= np.clip(within, 0, length)
        free = [name for name in PATH_KINDS if name in scenario.causes]
        length[self._of(free)] = 0
        communication = self._of(["communication"])
        hidden = length[communication].sum() if "communication" in scenario.hidden else 0.0
        return int(max(np.floor(length.sum() - hidden), np.floor(hidden)))

    def path(self) -> CriticalPath:
        """Everything that the thread did, in order."""
        return CriticalPath(
            numbers=self.numbers,
            start=self.start,
            end=self.end,
            kind=self.kind,
            row=self.row,
            lane=np.full(len(self.start), self.lane, np.int64),
        )

    def operator_ns(self) -> dict[str, int]:
        """Time by innermost operator, longest first."""
        inside = self.operator >= 0
        length = (self.end - self.start)[inside].astype(float)
        summed = np.bincount(self.operator[inside], weights=length)
        order = np.argsort(-summed, kind="stable")
        return {self.names[code]: int(summed[code]) for code in order.tolist() if summed[code] > 0}

    def _of(self, kinds: list[str]) -> NDArray[np.bool_]:
        return np.isin(self.kind, [PATH_KINDS.index(kind) for kind in kinds])

    def _codes(self, name: str) -> list[int]:
        return [self.names.index(name)] if name in self.names else []


def thread_replay(evidence: Evidence, steps: Steps, span: Span) -> ThreadReplay:
    """The loop's thread in the chosen steps; what lies between two host steps belongs to none."""
    trace, records = evidence.trace, evidence.records
    thread = host_thread(evidence, span, steps.lane, int(steps.end[0]))
    first, last = span.first, span.first + len(span.numbers)
    window = Range(start=int(steps.start[first]), end=int(steps.end[last - 1]))
    claimed = claimed_spans(trace, window, steps)
    cuts = [np.concatenate(spans) for spans in claimed.values()]
    borders = np.concatenate((steps.start[first:last], steps.end[first:last]))
    bounds = np.unique(np.concatenate((thread.start, borders, *cuts)))
    start, end = bounds[:-1], bounds[1:]
    index = steps.step_of(start)
    inside = (index >= first) & (index < last)
    start, end = start[inside], end[inside]
    kind = np.full(len(start), PATH_KINDS.index("host_other"), np.uint8)
    for part in PARTS:
        kind[contains(claimed[part], start)] = PATH_KINDS.index(part)
    piece = thread.at(start)
    shown = np.isin(thread.cause[piece], [CAUSE_CODE[cause] for cause in OWN_KIND])
    own = PATH_KINDS.index(CAUSES[0]) + thread.cause[piece]
    kind = np.where(shown, own, kind).astype(np.uint8)
    timeline = evidence.threads.joint(steps.lane, window)
    holder = climbed(
        records.nesting,
        timeline.position[timeline.at(start)],
        lambda at, _: records.own[at] == OPERATOR,
    )
    row = records.nesting.row[np.maximum(holder, 0)] if len(records.nesting.row) else holder
    return ThreadReplay(
        numbers=span.numbers,
        start=start,
        end=end,
        kind=kind,
        row=np.where(holder >= 0, row, thread.row[piece]).astype(np.int64),
        operator=np.where(holder >= 0, trace.events.name[row], -1).astype(np.int64),
        lane=steps.lane,
        names=trace.names,
    )
