"""Steps that take far longer than the others, and what was different in them.

A step is an outlier when it exceeds the median by more than ``MOST_DEVIATIONS`` normal deviations,
told by the median absolute deviation so that the outliers do not hide themselves (Iglewicz and
Hoaglin 1993 recommend 3.5), and by more than ``LEAST_SHARE`` of the median, because steps that are
equal to a thousandth make every small difference a "deviation".
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import CAUSES, operator_rows, python_cause, range_cause
from workbench.analysis.idle import Idle
from workbench.analysis.intervals import clip, total, union
from workbench.analysis.launches import Launches
from workbench.analysis.step_breakdown import StepBreakdown
from workbench.analysis.steps import STEP_NAME, Steps
from workbench.trace.table import Kind, Trace

MOST_DEVIATIONS = 3.5
NORMAL = 1.4826
"""Median absolute deviations in one standard deviation of a normal distribution."""
LEAST_SHARE = 0.1
LEAST_STEPS = 5
"""Of fewer steps nobody can say which one is unusual."""
LEAST_PART = 0.1
"""Share of the excess from which a part is named."""
MOST_NAMED = 3
GARBAGE = "garbage_collection"


@dataclass(frozen=True, kw_only=True)
class LongGap:
    """The longest piece of idle time in a step."""

    start: int
    end: int
    cause: str
    host: str | None
    """What the host was in meanwhile: an operator, a call or a range."""


@dataclass(frozen=True, kw_only=True)
class Outlier:
    """One step that took far longer than the others, and how it differs from them."""

    step: int
    time_ns: int
    excess_ns: int
    """Beyond the median of the steps that count."""
    grew: tuple[tuple[str, int], ...]
    """Parts that grew beyond their own median, most first, with the nanoseconds of growth."""
    gap: LongGap | None
    """``None`` without a device, or when it was never idle in the step."""
    garbage_ns: int | None
    """Collecting garbage on the host; ``None``: this trace cannot show it."""
    new_kernels: tuple[str, ...]
    """Kernels launched for the first time in the recording."""
    new_shapes: tuple[str, ...]
    """Operators with shapes that no earlier step had, such as ``aten::mm [[8,4],[4,2]]``."""
    only_here: tuple[str, ...]
    """Operators that no other step runs."""


def outlier_steps(time_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these step times are far longer than the others."""
    if len(time_ns) < LEAST_STEPS:
        return np.zeros(len(time_ns), bool)
    middle = float(np.median(time_ns))
    deviation = NORMAL * float(np.median(np.abs(time_ns - middle)))
    return np.asarray(time_ns > middle + max(MOST_DEVIATIONS * deviation, LEAST_SHARE * middle))


def find_outliers(
    trace: Trace, steps: Steps, launches: Launches, found: StepBreakdown, idle: Idle | None
) -> tuple[Outlier, ...]:
    """The steps among those that count that took far longer, in time order.

    Args:
        trace: The event table.
        steps: The complete steps.
        launches: The join of device work to its launching calls.
        found: Every step by parts.
        idle: The idle time of the same device; ``None`` without one.
    """
    steady = np.flatnonzero(found.steady)
    times = found.length[steady]
    slow = steady[outlier_steps(times)]
    if not len(slow):
        return ()
    news = _News(trace, steps, launches)
    middle = int(np.median(times))
    return tuple(
        Outlier(
            step=found.numbers[at],
            time_ns=int(found.length[at]),
            excess_ns=int(found.length[at]) - middle,
            grew=_grew(found, at, int(found.length[at]) - middle),
            gap=None if idle is None else _longest(trace, idle, found, at),
            garbage_ns=news.garbage(at, found, idle),
            new_kernels=news.kernels(at),
            new_shapes=news.shapes(at),
            only_here=news.only_here(at),
        )
        for at in slow.tolist()
    )


def _grew(found: StepBreakdown, at: int, excess: int) -> tuple[tuple[str, int], ...]:
    grown = [
        (name, int(values[at]) - int(np.median(values[found.steady])))
        for name, values in found.parts.items()
        if values is not None
    ]
    named = [each for each in grown if each[1] >= LEAST_PART * excess]
    return tuple(sorted(named, key=lambda each: -each[1])[:MOST_NAMED])


def _longest(trace: Trace, idle: Idle, found: StepBreakdown, at: int) -> LongGap | None:
    longest, most = None, 0
    for pieces in idle.pieces.blocks():
        start = pieces.start
        end = np.minimum(start + pieces.length, found.end[at])
        start = np.maximum(start, found.start[at])
        which = int(np.argmax(end - start))
        if end[which] - start[which] > most:
            most = int(end[which] - start[which])
            rows = [int(pieces.host[which]), int(pieces.operator[which])]
            names = [trace.names[trace.events.name[row]] for row in rows if row >= 0]
            longest = LongGap(
                start=int(start[which]),
                end=int(end[which]),
                cause=CAUSES[int(pieces.cause[which])],
                host=next((name for name in names if not STEP_NAME.match(name)), None),
            )
    return longest


class _News:
    """What the host did in one step and in no step before it."""

    def __init__(self, trace: Trace, steps: Steps, launches: Launches) -> None:
        self._trace = trace
        self._steps = steps
        self._launches = launches
        events = trace.events
        self._operators = np.flatnonzero(operator_rows(trace))
        codes = [
            code
            for code, name in enumerate(trace.names)
            if GARBAGE in (range_cause(name), python_cause(name))
        ]
        kinds = (Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON, Kind.OTHER)
        self._garbage = np.flatnonzero(np.isin(events.name, codes) & events.of_kind(*kinds))

    def kernels(self, at: int) -> tuple[str, ...]:
        """Names of kernels whose first launch lies in the step."""
        events = self._trace.events
        rows = events.rows(Kind.KERNEL)
        rows = rows[self._launches.launch[rows] >= 0]
        called = events.ts[self._launches.launch[rows]]
        return self._named(self._first(events.name[rows].astype(np.int64), called, at))

    def shapes(self, at: int) -> tuple[str, ...]:
        """Operators with shapes that first occur in the step."""
        events = self._trace.events
        rows = self._operators[events.shapes[self._operators] >= 0]
        count = max(len(self._trace.shapes), 1)
        key = events.name[rows].astype(np.int64) * count + events.shapes[rows]
        return tuple(
            f"{self._trace.names[code // count]} {self._trace.shapes[code % count]}"
            for code in self._first(key, events.ts[rows], at)
        )

    def only_here(self, at: int) -> tuple[str, ...]:
        """Operators that run in the step and in no other one."""
        names = self._trace.events.name[self._operators]
        index = self._steps.step_of(self._trace.events.ts[self._operators])
        mine, others = names[index == at], names[(index >= 0) & (index != at)]
        return self._named(np.setdiff1d(mine, others).tolist())

    def garbage(self, at: int, found: StepBreakdown, idle: Idle | None) -> int | None:
        """Time of collecting garbage in the host's range of the step."""
        seen = found.parts.get(GARBAGE) is not None if idle is not None else False
        if not len(self._garbage) and not seen:
            return None
        events = self._trace.events
        spans = union(events.ts[self._garbage], events.end[self._garbage])
        return total(clip(spans, int(self._steps.start[at]), int(self._steps.end[at])))

    def _first(self, key: NDArray[np.int64], ts: NDArray[np.int64], at: int) -> list[int]:
        """The keys that occur in the step and never before it."""
        before = ts < self._steps.start[at]
        inside = ~before & (ts < self._steps.end[at])
        return [int(code) for code in np.setdiff1d(key[inside], key[before])]

    def _named(self, codes: list[int]) -> tuple[str, ...]:
        return tuple(self._trace.names[code] for code in codes)
