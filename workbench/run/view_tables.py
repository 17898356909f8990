"""The tables of a Run's page: statistics of steps, devices, and its own tables cut to fit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from workbench.pages import detail_tables
from workbench.pages.frames import families_table, kernels_table, operators_table, steps_table
from workbench.pages.gaps import gaps_table
from workbench.pages.memory import holders_table
from workbench.pages.replay import path_table, what_if_table
from workbench.pages.table import Column, Table
from workbench.run.breakdowns import MOST_RANKS, device_label, doubt, whose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workbench.figures.breakdown import Doubt
    from workbench.run.run import Run

DOUBTS: tuple[Doubt, ...] = ("times", "causes")
"""The graver one first."""


def tables_of(run: Run) -> tuple[Table, ...]:
    """Step statistics, devices, and every table of the Run that has rows."""
    tables = [*_step_tables(run)]
    if any(rank.device_time for rank in run.ranks):
        tables.append(_devices(run))
    tables += [*_paths(run)]
    doubts = {doubt(rank) for rank in run.ranks}
    worst = next((each for each in DOUBTS if each in doubts), None)
    for frame, shown in (
        (run.gaps, partial(gaps_table, doubt=worst)),
        (run.what_if, partial(what_if_table, measured=_free_loader(run))),
        (run.outliers, detail_tables.outliers_table),
        (run.phases, detail_tables.phases_table),
        (run.kernels, kernels_table),
        (run.families, families_table),
        (run.operators, operators_table),
        (run.launches, detail_tables.launches_table),
        (run.copies, detail_tables.copies_table),
        (run.process_groups, detail_tables.groups_table),
    ):
        if frame is not None and len(frame):
            tables.append(shown(frame))
    if run.memory_holders is not None and len(run.memory_holders):
        tables.append(holders_table(run.memory_holders))
    return tuple(tables)


def _free_loader(run: Run) -> tuple[float, float] | None:
    """What a step takes on batches at hand, and how much less that is than the usual step."""
    from workbench.findings.input_wait import freed
    from workbench.findings.usual_steps import usual
    from workbench.run.facts import recorded

    found = freed(usual(recorded(run.record))[0])
    return None if found is None else (found.replay_ns, found.saving_ns)


def _step_tables(run: Run) -> Iterator[Table]:
    timings = None if run.record is None else run.record.timings
    if timings is not None:
        yield steps_table(timings.step_ns, warmup=timings.warmup, input_ns=timings.input_ns or None)
        return
    for rank in run.ranks[:MOST_RANKS]:
        if rank.steps is not None:
            yield steps_table(
                rank.steps.time_ns,
                warmup=rank.steps.warmup,
                input_ns=None,
                caption=f"{whose(run, rank)}step times under the profiler".capitalize(),
            )


def _paths(run: Run) -> Iterator[Table]:
    for rank in run.ranks[:MOST_RANKS]:
        path = rank.replayed.path
        if path is not None:
            yield path_table(path.by_kind, step=path.numbers[0], whose=whose(run, rank))


def _devices(run: Run) -> Table:
    rows = [
        (
            whose(run, rank) + device_label(rank, index),
            time.range.length,
            time.busy,
            time.busy / time.range.length if time.range.length else None,
            time.exposed_communication,
            time.exposed_memory,
            time.idle,
        )
        for rank in run.ranks
        for index, time in rank.device_time.items()
    ]
    names = ("window", "busy", "busy share", "exposed communication", "exposed copies", "idle")
    columns = [Column(name="device", kind="name")]
    columns += [Column(name=n, kind="share" if n == "busy share" else "time") for n in names]
    caption = "Devices in the window"
    if any(doubt(rank) == "times" for rank in run.ranks):
        caption += ", not certain: a profile fails its own checks"
    return Table(caption=caption, columns=tuple(columns), rows=tuple(rows))
