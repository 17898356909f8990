"""The charts of a Run, each with its table and its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.errors import RunError
from workbench.pages.charts import (
    breakdown_chart,
    idle_chart,
    kernels_chart,
    operators_chart,
    steps_chart,
    waits_chart,
)

if TYPE_CHECKING:
    from workbench.pages.static import StaticFigure
    from workbench.run.run import Run


def chart(run: Run, name: str) -> StaticFigure:
    """The chart of that name; an unknown name lists the known ones."""
    if name not in _CHARTS:
        raise RunError(f"no figure is called {name!r}; there are {', '.join(_CHARTS)}.")
    return _CHARTS[name](run)


def _breakdown(run: Run) -> StaticFigure:
    from workbench.run.view import breakdowns

    parts = breakdowns(run.ranks[0])
    return breakdown_chart(parts[0] if parts else None)


def _steps(run: Run) -> StaticFigure:
    timings = None if run.record is None else run.record.timings
    if timings is not None:
        return steps_chart(timings.step_ns, warmup=timings.warmup, input_ns=timings.input_ns)
    steps = run.ranks[0].steps
    if steps is None or not len(steps.time_ns):
        return steps_chart(None)
    return steps_chart(
        [int(ns) for ns in steps.time_ns], warmup=steps.warmup, measured="under the profiler"
    )


def _kernels(run: Run) -> StaticFigure:
    return kernels_chart(run.ranks[0].kernels)


def _operators(run: Run) -> StaticFigure:
    return operators_chart(run.ranks[0].operators)


def _idle(run: Run) -> StaticFigure:
    from workbench.analysis.causes import CAUSES
    from workbench.run.view import device_label

    rank = run.ranks[0]
    for device, idle in rank.idle.items():
        return idle_chart(
            idle.pieces.start,
            idle.pieces.end,
            idle.pieces.cause,
            causes=CAUSES,
            by_cause=idle.by_cause,
            window_ns=idle.range.length,
            window_start=idle.range.start,
            device_label=device_label(rank, device),
        )
    reason = run.summary.not_measured.get("idle", "no device work was recorded")
    return idle_chart(
        None,
        None,
        None,
        causes=CAUSES,
        by_cause={},
        window_ns=0,
        device_label="the device",
        reason=f"{reason}.",
    )


def _input(run: Run) -> StaticFigure:
    timings = None if run.record is None else run.record.timings
    if timings is not None:
        return waits_chart(timings.step_ns[timings.warmup :], timings.input_ns[timings.warmup :])
    return _traced_waits(run)


def _traced_waits(run: Run) -> StaticFigure:
    """Waits of a trace from elsewhere: summed over each host step."""
    import numpy as np

    rank = run.ranks[0]
    steps, wait = rank.steps, rank.input_wait
    if steps is None or wait is None:
        return waits_chart(None, None)
    waits = wait.waits
    numbers = np.asarray(steps.numbers)
    order = np.argsort(numbers)
    known = np.isin(waits.step, numbers)
    at = order[np.searchsorted(numbers[order], waits.step[known])]
    per_step = np.zeros(len(numbers), dtype=np.int64)
    np.add.at(per_step, at, (waits.end - waits.start)[known])
    return waits_chart(
        [int(ns) for ns in steps.host_ns],
        [int(ns) for ns in np.minimum(per_step, steps.host_ns)],
        measured="under the profiler",
    )


_CHARTS: dict[str, Callable[[Run], StaticFigure]] = {
    "breakdown": _breakdown,
    "steps": _steps,
    "kernels": _kernels,
    "operators": _operators,
    "idle": _idle,
    "input": _input,
}
