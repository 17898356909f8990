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


def chart(run: Run, name: str, device: int | None) -> StaticFigure:
    """The chart of that name; an unknown name or device lists the known ones."""
    if name not in _CHARTS and name not in _DEVICE_CHARTS:
        known = ", ".join((*_DEVICE_CHARTS, *_CHARTS))
        raise RunError(f"no figure is called {name!r}; there are {known}.")
    if device is not None and device not in run.devices:
        known = ", ".join(map(str, run.devices)) or "none"
        raise RunError(f"no work was recorded on device {device}; recorded devices: {known}.")
    if name in _CHARTS:
        return _CHARTS[name](run)
    first = run.devices[0] if run.devices else None
    return _DEVICE_CHARTS[name](run, first if device is None else device)


def _breakdown(run: Run, device: int | None) -> StaticFigure:
    from workbench.run.view import breakdowns

    parts = breakdowns(run.ranks[0])
    if device is None:
        return breakdown_chart(parts[0] if parts else None)
    at = list(run.ranks[0].device_time).index(device)
    return breakdown_chart(parts[at])


def _steps(run: Run) -> StaticFigure:
    timings = None if run.record is None else run.record.timings
    if timings is not None:
        return steps_chart(
            timings.step_ns, warmup=timings.warmup, input_ns=timings.input_ns or None
        )
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


def _idle(run: Run, device: int | None) -> StaticFigure:
    from workbench.analysis.causes import CAUSES
    from workbench.run.view import device_label

    rank = run.ranks[0]
    if device is not None:
        idle = rank.idle[device]
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
    if timings is not None and timings.input_ns:
        return waits_chart(timings.step_ns, timings.input_ns, warmup=timings.warmup)
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


_DEVICE_CHARTS: dict[str, Callable[[Run, int | None], StaticFigure]] = {
    "breakdown": _breakdown,
    "idle": _idle,
}
_CHARTS: dict[str, Callable[[Run], StaticFigure]] = {
    "steps": _steps,
    "kernels": _kernels,
    "operators": _operators,
    "input": _input,
}
