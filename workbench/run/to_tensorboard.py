"""A copy of a Run's traces that TensorBoard's profiler plugin reads right.

The plugin, torch-tb-profiler 0.4.3, was last taught the format of 2023. Of a newer trace it shows
no wait for data, no runtime calls and no collectives, and counts a step once for the host and once
for the device. The copy spells what it holds as the plugin expects it; times stay the trace's own.
"""

from __future__ import annotations

import importlib.util
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.analysis.collective_names import collective_kind
from workbench.analysis.collective_records import Records
from workbench.analysis.collectives import collective_rows
from workbench.analysis.input_wait import waiting_rows
from workbench.errors import MissingExtraError, RunError
from workbench.run.tensorboard_words import CALL, STEP, Spelled, arrows, code_of, plain_lanes
from workbench.trace.table import DEVICE_WORK, Events, Kind, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from workbench.run.rank import RankAnalysis

    Rows = NDArray[np.int64]

PLUGIN = "torch_tb_profiler"
KNOWN_COLLECTIVES = ("broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter")
NEAREST = {"reduce": "reduce", "scatter": "broadcast", "gather": "all_gather"}
"""Of collectives that it does not know, the one under whose name they are shown."""


def to_tensorboard(ranks: Sequence[RankAnalysis], folder: Path, *, name: str) -> Path:
    """Write ``<folder>/<name>/rank<N>.<time>.pt.trace.json.gz``, and return that folder.

    Raises:
        MissingExtraError: The extra ``tensorboard`` is not installed.
        RunError: The folder is there already, or holds no trace.
    """
    from workbench.trace.writing import write_trace

    if importlib.util.find_spec(PLUGIN) is None:
        raise MissingExtraError("torch-tb-profiler", "tensorboard", "A copy for TensorBoard")
    target = folder / ("".join(c if c.isalnum() or c in "-_." else "_" for c in name) or "run")
    if target.exists():
        raise RunError(f"{target} is there already: give another folder, or delete it first.")
    numbers = [rank.rank for rank in ranks]
    known = None not in numbers and len(set(numbers)) == len(numbers)
    stamp = next((r.trace.base_ns for r in ranks if r.trace.base_ns is not None), 0) // 10**6
    made: list[Path] = []
    target.mkdir(parents=True)
    try:
        for place, rank in enumerate(ranks):
            worker = f"rank{rank.rank if known else place}"
            made.append(target / f"{worker}.{stamp}.pt.trace.json.gz")
            write_trace(for_plugin(rank), made[-1])
            rank.release()
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        target.rmdir()
        raise
    return target


def for_plugin(rank: RankAnalysis) -> Trace:
    """The trace of one rank in the plugin's spelling.

    Steps and collectives are written anew, after all other events: the complete steps as we count
    them, and a call for every collective, which kernels are told by.
    """
    trace = rank.trace
    spelled = Spelled(trace)
    _name_waits(rank, spelled)
    external = trace.events.external_id.copy()
    joined = trace.events.of_kind(Kind.RUNTIME, Kind.DRIVER, *DEVICE_WORK)
    external[joined & (external == -1)] = 0
    steps = _steps(rank, spelled)
    calls = _calls(rank, spelled, external)
    columns = spelled.columns() | {"external_id": external}
    events = _with_rows(replace(trace.events, **columns), [*steps, *calls])
    flows = arrows(trace, spelled)
    return replace(
        trace,
        events=events,
        names=tuple(spelled.names),
        categories=tuple(spelled.categories),
        lanes=plain_lanes(trace),
        shapes=tuple(spelled.shapes),
        types=tuple(spelled.types),
        flows=flows,
        instants=replace(trace.instants, category=np.zeros_like(trace.instants.category)),
    )


def _name_waits(rank: RankAnalysis, spelled: Spelled) -> None:
    """Every wait for a batch gets the one name that the plugin takes for the loader's."""
    rows = waiting_rows(rank.trace, rank.steps)
    prefix, ending = "enumerate(DataLoader)#", ".__next__"
    named = [rank.trace.names[code] for code in rank.trace.events.name[rows].tolist()]
    told = [
        name if name.startswith(prefix) and name.endswith(ending) else f"{prefix}{name}{ending}"
        for name in named
    ]
    spelled.rename(rows, told)
    spelled.call_operators(rows)


def _steps(rank: RankAnalysis, spelled: Spelled) -> list[dict[str, int]]:
    steps = rank.steps
    if steps is None:
        return []
    spans = zip(steps.numbers, steps.start.tolist(), steps.end.tolist(), strict=True)
    return [
        {
            "ts": start,
            "dur": end - start,
            "name": spelled.name_code(f"ProfilerStep#{number}"),
            "kind": Kind.ANNOTATION,
            "category": spelled.code(STEP),
            "lane": steps.lane,
        }
        for number, start, end in spans
    ]


def _calls(rank: RankAnalysis, spelled: Spelled, external: Rows) -> list[dict[str, int]]:
    """A call for every record of a collective inside the steps, of the bytes that it moves.

    On a device it has no length and stands where the kernel was launched: the kernel, which carries
    its id, is what takes time. On the host it is the collective itself.
    """
    trace, events = rank.trace, rank.trace.events
    rows = collective_rows(trace)
    if rank.steps is not None and len(rank.steps):
        first, last = int(rank.steps.start[0]), int(rank.steps.end[-1])
        rows = rows[(events.ts[rows] >= first) & (events.ts[rows] < last)]
    if not len(rows):
        return []
    owner, told = Records(trace, rank.launches).calls(rows)
    launch = rank.launches.launch[rows]
    fresh = int(external.max(initial=0)) + 1
    loop = 0 if rank.steps is None else rank.steps.lane
    made = []
    for number, (row, call) in enumerate(zip(rows.tolist(), owner.tolist(), strict=True)):
        on_device = events.kind[row] in DEVICE_WORK
        by = int(launch[number]) if on_device else row
        ident = fresh + number
        kind = collective_kind(trace.names[events.name[row]])
        kind = told[call].kind if kind == "other" else kind
        library = "nccl" if on_device else "gloo"
        size = told[call].bytes
        if on_device:
            external[row] = ident
            if by >= 0:
                external[by] = ident
        made.append(
            {
                "ts": int(events.ts[by if by >= 0 else row]),
                "dur": 0 if on_device else int(events.dur[row]),
                "name": spelled.name_code(f"{library}:{shown_as(kind)}"),
                "kind": Kind.ANNOTATION,
                "category": spelled.code(CALL),
                "lane": int(events.lane[by]) if by >= 0 else loop,
                "external_id": ident,
                **(
                    {}
                    if size is None
                    else {
                        "shapes": code_of(spelled.shapes, f"[[{size}]]"),
                        "types": code_of(spelled.types, '["unsigned char"]'),
                    }
                ),
            }
        )
    return made


def shown_as(kind: str) -> str:
    """The collective that the plugin knows, under whose name one of this kind is shown."""
    if kind in KNOWN_COLLECTIVES:
        return kind
    return NEAREST.get(kind, "all_gather" if kind.startswith("all_to_all") else "broadcast")


def _with_rows(events: Events, made: Sequence[dict[str, int]]) -> Events:
    """The events and some more after them, so that rows that other tables name stay theirs."""
    columns: dict[str, Any] = {}
    for column in fields(Events):
        old = getattr(events, column.name)
        new = np.array([row.get(column.name, -1) for row in made], old.dtype)
        columns[column.name] = np.concatenate((old, new))
    return Events(**columns)
