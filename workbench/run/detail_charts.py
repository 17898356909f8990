"""The charts of single steps, launches, copies, and of ranks step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.figures.queue import MOST_POINTS, Line
from workbench.pages.detail_charts import (
    copies_chart,
    families_chart,
    queue_chart,
    rank_steps_chart,
    step_parts_chart,
    waterfall_chart,
)
from workbench.run.breakdowns import breakdowns, device_label, doubt, rank_label
from workbench.run.summary import not_idle_because

if TYPE_CHECKING:
    import pandas as pd

    from workbench.pages.static import StaticFigure
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run

WAIT = "exposed_communication_wait"


def waterfall(rank: RankAnalysis, device: int | None) -> StaticFigure:
    """From compute alone to the measured step of one device."""
    if device is None:
        return waterfall_chart(None, reason=f"{not_idle_because(rank)}.")
    return waterfall_chart(breakdowns(rank)[list(rank.device_time).index(device)])


def step_parts(rank: RankAnalysis, device: int | None) -> StaticFigure:
    """What each step of one device, or of the loop's thread, waits for."""
    found = rank.details.steps.get(device)
    label = "the loop's thread" if device is None else device_label(rank, device)
    if found is None:
        return step_parts_chart(None, device_label=label)
    return step_parts_chart(
        found.parts,
        length_ns=found.length,
        numbers=found.numbers,
        slow=[each.step for each in rank.details.outliers.get(device, ())],
        device_label=label,
        doubt=None if device is None else doubt(rank),
    )


def queue(rank: RankAnalysis, device: int | None) -> StaticFigure:
    """The queue of one device over its window."""
    import numpy as np

    window = None if device is None else rank.windows.get(device)
    if device is None or window is None:
        return queue_chart(None, None, reason=f"{not_idle_because(rank)}.")
    queues = rank.details.queues(device)
    if not queues:
        return queue_chart(None, None)
    span = window.shifted(rank.launches.clock_offset.get(device, 0))
    edges = np.linspace(span.start, span.end, MOST_POINTS + 1).astype(np.int64)
    table = rank.details.launches
    starts = () if rank.steps is None else (rank.steps.start - span.start).tolist()
    return queue_chart(
        [Line(each.stream, each.means(edges), each.maxima(edges)) for each in queues],
        None if table is None else table[table["device"] == device],
        window_ns=span.length,
        empty_share=queues[0].empty_share(span),
        mean=queues[0].mean(span),
        step_starts_ns=starts,
        device_label=device_label(rank, device),
    )


def families(rank: RankAnalysis, device: int | None) -> StaticFigure:
    """The families of kernels."""
    return families_chart(of_device(rank.details.families, device))


def copies(rank: RankAnalysis, device: int | None) -> StaticFigure:
    """Every copy by size and bandwidth."""
    found = rank.details
    return copies_chart(of_device(found.copy_calls, device), of_device(found.copies, device))


def of_device(frame: pd.DataFrame | None, device: int | None) -> pd.DataFrame | None:
    """The rows of one device; all where none is named."""
    return frame if frame is None or device is None else frame[frame["device"] == device]


def memory(_: Run, rank: RankAnalysis) -> StaticFigure:
    """The fullest memory over time, by who holds it."""
    from workbench.pages.memory import memory_chart

    if not rank.memory_devices:
        return memory_chart(None, None)
    found = rank.memory_devices[0]
    return memory_chart(
        found.timeline,
        found.holders,
        label=found.device.label,
        peak_bytes=found.peak_bytes,
        peak_ns=found.peak_ns,
        absolute=found.absolute,
    )


def rank_steps(run: Run) -> StaticFigure:
    """How long each rank waits for the others in each step."""
    import numpy as np

    if run.job is None:
        return rank_steps_chart(None)
    rows: list[dict[int, float]] = []
    for rank in run.ranks:
        found = next(iter(rank.details.steps.values()), None)
        waits = None if found is None else found.parts.get(WAIT)
        numbers = () if found is None else found.numbers
        own = () if waits is None else waits.tolist()
        rows.append(dict(zip(numbers, own, strict=False)))
        run.job.rest(rank)
    steps = sorted(set().union(*rows))
    if not steps:
        return rank_steps_chart(
            None, reason="no rank has a complete step whose waits for other ranks are known."
        )
    values = np.array([[row.get(step, np.nan) for step in steps] for row in rows], np.float64)
    return rank_steps_chart(values, ranks=[rank_label(rank) for rank in run.ranks], steps=steps)
