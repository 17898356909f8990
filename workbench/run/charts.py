"""The charts of a Run, each with its table and its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.errors import RunError
from workbench.pages.charts import (
    breakdown_chart,
    collectives_chart,
    idle_chart,
    kernels_chart,
    named,
    operators_chart,
    ranks_chart,
    steps_chart,
    waits_chart,
)
from workbench.run import detail_charts, loader_charts
from workbench.run.breakdowns import breakdowns, device_label, device_name, doubt, rank_label
from workbench.run.cost_charts import COST_CHARTS
from workbench.run.summary import not_idle_because

if TYPE_CHECKING:
    from workbench.pages.static import StaticFigure
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run


TOO_FEW = "one complete step has no time from completion to completion; record at least two."


def chart(run: Run, name: str, rank: RankAnalysis, device: int | None) -> StaticFigure:
    """The chart of that name; an unknown name or device lists the known ones."""
    if name in _RUN_CHARTS:
        return _RUN_CHARTS[name](run)
    drawn = _of_rank(run, name, rank, device)
    return named(drawn, rank_label(rank)) if len(run.ranks) > 1 else drawn


def _of_rank(run: Run, name: str, rank: RankAnalysis, device: int | None) -> StaticFigure:
    if name not in {*_CHARTS, *_FRAME_CHARTS, *_DEVICE_CHARTS}:
        known = ", ".join((*_DEVICE_CHARTS, *_FRAME_CHARTS, *_CHARTS, *_RUN_CHARTS))
        raise RunError(f"no figure is called {name!r}; there are {known}.")
    devices = tuple(rank.device_time)
    if device is not None and device not in devices:
        known = ", ".join(map(str, devices)) or "none"
        raise RunError(f"no work was recorded on device {device}; recorded devices: {known}.")
    if name in _FRAME_CHARTS:
        drawn = _FRAME_CHARTS[name](rank, device)
        if device is None or len(devices) == 1:
            return drawn
        return named(drawn, device_name(rank, device))
    if name in _CHARTS:
        return _CHARTS[name](run, rank)
    first = devices[0] if devices else None
    return _DEVICE_CHARTS[name](rank, first if device is None else device)


def _breakdown(rank: RankAnalysis, device: int | None) -> StaticFigure:
    parts = breakdowns(rank)
    if device is None:
        return breakdown_chart(parts[0] if parts else None)
    return breakdown_chart(parts[list(rank.device_time).index(device)])


def _steps(run: Run, rank: RankAnalysis) -> StaticFigure:
    timings = None if run.record is None else run.record.timings
    if timings is not None:
        return steps_chart(
            timings.step_ns, warmup=timings.warmup, input_ns=timings.input_ns or None
        )
    steps = rank.steps
    if steps is None:
        return steps_chart(None)
    if not len(steps.time_ns):
        return steps_chart(None, reason=TOO_FEW)
    return steps_chart(
        [int(ns) for ns in steps.time_ns],
        warmup=steps.warmup,
        numbers=steps.numbers[len(steps) - len(steps.time_ns) :],
        measured="under the profiler",
    )


def _kernels(rank: RankAnalysis, device: int | None) -> StaticFigure:
    return kernels_chart(detail_charts.of_device(rank.kernels, device))


def _operators(_: Run, rank: RankAnalysis) -> StaticFigure:
    return operators_chart(rank.operators)


def _communication(run: Run, rank: RankAnalysis) -> StaticFigure:
    return collectives_chart(rank.collective_calls, rank.communication, at_least=run.job is None)


def _ranks(run: Run) -> StaticFigure:
    found = None if run.job is None else run.job.straggler
    return ranks_chart(
        run.imbalance,
        straggler=None if found is None else found.rank,
        waited_ns=None if found is None else found.others_wait_ns_per_step,
    )


def _idle(rank: RankAnalysis, device: int | None) -> StaticFigure:
    from workbench.analysis.causes import CAUSES

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
            doubt=doubt(rank),
        )
    return idle_chart(
        None,
        None,
        None,
        causes=CAUSES,
        by_cause={},
        window_ns=0,
        device_label="the device",
        reason=f"{not_idle_because(rank)}.",
    )


def _input(run: Run, rank: RankAnalysis) -> StaticFigure:
    timings = None if run.record is None else run.record.timings
    if timings is not None and timings.input_ns:
        return waits_chart(timings.step_ns, timings.input_ns, warmup=timings.warmup)
    return _traced_waits(rank)


def _traced_waits(rank: RankAnalysis) -> StaticFigure:
    """Waits of a trace from elsewhere: summed over each host step."""
    import numpy as np

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
        numbers=steps.numbers,
        measured="under the profiler",
    )


def _critical_path(_: Run, rank: RankAnalysis) -> StaticFigure:
    return rank.replayed.chart()


_DEVICE_CHARTS: dict[str, Callable[[RankAnalysis, int | None], StaticFigure]] = {
    "breakdown": _breakdown,
    "idle": _idle,
    "waterfall": detail_charts.waterfall,
    "step_parts": detail_charts.step_parts,
    "queue": detail_charts.queue,
}
_CHARTS: dict[str, Callable[[Run, RankAnalysis], StaticFigure]] = {
    "steps": _steps,
    "operators": _operators,
    "input": _input,
    "communication": _communication,
    "memory": detail_charts.memory,
    "critical_path": _critical_path,
    "stalls": loader_charts.stalls,
    "loader_lanes": loader_charts.lanes,
    "loader_rate": loader_charts.rate,
    "epochs": loader_charts.epochs,
    **COST_CHARTS,
}
_FRAME_CHARTS: dict[str, Callable[[RankAnalysis, int | None], StaticFigure]] = {
    "kernels": _kernels,
    "families": detail_charts.families,
    "copies": detail_charts.copies,
}
"""Of all devices together, or of the one that is named."""
_RUN_CHARTS: dict[str, Callable[[Run], StaticFigure]] = {
    "ranks": _ranks,
    "rank_steps": detail_charts.rank_steps,
}
