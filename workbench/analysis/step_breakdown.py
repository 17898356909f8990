"""Where every single step goes: the parts of the window's breakdown, cut at the steps' borders.

On a device a step lasts from the completion of the work launched up to the step before it to the
completion of its own, so the steps of a window lie edge to edge and each part of the window is the
sum of the same part over its steps. Without a device a step is its host range; what lies between
two ranges belongs to none. The parts of a step sum to its length exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import CAUSE_CODE
from workbench.analysis.device_time import work_classes
from workbench.analysis.host import PARTS, claimed_spans
from workbench.analysis.intervals import Spans, covered_until, joined, subtract
from workbench.analysis.launches import Launches
from workbench.analysis.ranges import Range
from workbench.analysis.steps import NOTHING, Steps, completions
from workbench.trace.table import Trace

if TYPE_CHECKING:
    from workbench.analysis.idle import Idle

Times = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class StepBreakdown:
    """Nanoseconds of every complete step by part; a value a step in each array."""

    device: int | None
    """Index of the device; ``None`` for the loop's thread."""
    numbers: tuple[int, ...]
    start: Times
    """On the device's own clock; the host's without a device."""
    end: Times
    steady: NDArray[np.bool_]
    """Steps that count: both borders were recorded, and warm-up is over."""
    parts: Mapping[str, Times | None]
    """The parts of the window's breakdown; ``None``: not measured."""

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def length(self) -> Times:
        """Length of every step; on a device its step time."""
        return self.end - self.start

    def summed(self, steps: NDArray[np.bool_] | None = None) -> dict[str, int | None]:
        """Each part over some steps, by default over those that count."""
        chosen = self.steady if steps is None else steps
        return {
            name: None if values is None else int(values[chosen].sum())
            for name, values in self.parts.items()
        }


def device_steps(
    trace: Trace,
    device: int,
    steps: Steps,
    launches: Launches,
    *,
    idle: "Idle",
    waits: Spans | None = None,
) -> StepBreakdown:
    """Break every step of a device down.

    Args:
        trace: The event table.
        device: Index of the device.
        steps: The complete steps.
        launches: The join of device work to its launching calls.
        idle: Why the device was idle in its window, which is the range of all steps.
        waits: The exposed communication that is waiting for other ranks, on the device's clock;
            ``None`` where other ranks were not seen.
    """
    borders = step_borders(trace, device, steps, launches, idle.range)
    work = work_classes(trace, device)
    communication = subtract(work.communication, work.compute)
    in_the_way = joined(work.compute, work.communication)
    exposed = _between(communication, borders)
    waited = None if waits is None else _between(waits, borders)
    parts: dict[str, Times | None] = {
        "compute": _between(work.compute, borders),
        "exposed_communication_wait": waited,
        "exposed_communication_transfer": exposed if waited is None else exposed - waited,
        "exposed_memory": _between(subtract(work.memory, in_the_way), borders),
    }
    for cause, times in _idle_between(idle, borders).items():
        parts[cause] = None if idle.by_cause[cause] is None else times
    return StepBreakdown(
        device=device,
        numbers=steps.numbers,
        start=borders[:-1],
        end=borders[1:],
        steady=steps.steady,
        parts=parts,
    )


def host_steps(
    trace: Trace, window: Range, steps: Steps, measured: Mapping[str, int | None]
) -> StepBreakdown:
    """Break every step of the loop's thread down, where no device was recorded.

    Args:
        trace: The event table.
        window: The range of all steps.
        steps: The complete steps.
        measured: The window's own breakdown, which tells the parts that were not measured.
    """
    claimed = claimed_spans(trace, window, steps)
    parts: dict[str, Times | None] = {
        name: None
        if measured[name] is None
        else covered_until(claimed[name], steps.end) - covered_until(claimed[name], steps.start)
        for name in PARTS
    }
    return StepBreakdown(
        device=None,
        numbers=steps.numbers,
        start=steps.start,
        end=steps.end,
        steady=steps.steady,
        parts=parts,
    )


def step_borders(
    trace: Trace, device: int, steps: Steps, launches: Launches, window: Range
) -> Times:
    """Where each step of a device begins, and where the last one ends.

    A step that launched nothing on the device is complete when the host is, and never before the
    step ahead of it.
    """
    done = completions(trace, launches, device, steps.start, steps.end)
    host = steps.end - launches.clock_offset.get(device, 0)
    done = np.maximum.accumulate(np.where(done > NOTHING, done, host))
    borders = np.concatenate(([np.int64(window.start)], done))
    borders[-1] = window.end
    return np.clip(borders, window.start, window.end)


def _idle_between(idle: "Idle", borders: Times) -> dict[str, Times]:
    """Idle time by cause between each two borders."""
    parts = {cause: np.zeros(len(borders) - 1, np.int64) for cause in CAUSE_CODE}
    for pieces in idle.pieces.blocks():
        start = pieces.start
        end = start + pieces.length
        for cause, code in CAUSE_CODE.items():
            mine = np.flatnonzero(pieces.cause == code)
            if len(mine):
                parts[cause] += _between(Spans(start[mine], end[mine]), borders)
    return parts


def _between(spans: Spans, borders: Times) -> Times:
    return np.diff(covered_until(spans, borders))
