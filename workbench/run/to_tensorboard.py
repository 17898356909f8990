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

from workbench.analysis.collective_names import BACKEND_RANGE, collective_kind
from workbench.analysis.collective_records import Records
from workbench.analysis.collectives import collective_rows
from workbench.analysis.input_wait import waiting_rows
from workbench.analysis.steps import step_codes
from workbench.errors import MissingExtraError, RunError
from workbench.trace.table import DEVICE_WORK, Events, Flows, Kind, Lane, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from workbench.run.rank import RankAnalysis

    Rows = NDArray[np.int64]

PLUGIN = "torch_tb_profiler"
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
KNOWN_COLLECTIVES = ("broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter")
NEAREST = {"reduce": "reduce", "scatter": "broadcast", "gather": "all_gather"}
"""Of collectives that it does not know, the one under whose name they are shown."""
OPTIMIZER = "Optimizer."


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
    spelled = _Spelled(trace)
    _name_waits(rank, spelled)
    external = trace.events.external_id.copy()
    joined = trace.events.of_kind(Kind.RUNTIME, Kind.DRIVER, *DEVICE_WORK)
    external[joined & (external == -1)] = 0
    steps = _steps(rank, spelled)
    calls = _calls(rank, spelled, external)
    columns = spelled.columns() | {"external_id": external}
    events = _with_rows(replace(trace.events, **columns), [*steps, *calls])
    flows = _arrows(trace, spelled)
    return replace(
        trace,
        events=events,
        names=tuple(spelled.names),
        categories=tuple(spelled.categories),
        lanes=_plain_lanes(trace),
        shapes=tuple(spelled.shapes),
        types=tuple(spelled.types),
        flows=flows,
        instants=replace(trace.instants, category=np.zeros_like(trace.instants.category)),
    )


class _Spelled:
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
        return self.categories.index(category)

    def call_operators(self, rows: Rows) -> None:
        self.category[rows] = self.code("cpu_op")

    def rename(self, rows: Rows, names: Sequence[str]) -> None:
        for row, name in zip(rows.tolist(), names, strict=True):
            self.name[row] = self.name_code(name)

    def name_code(self, name: str) -> int:
        return _code(self.names, name)

    def columns(self) -> dict[str, Any]:
        return {"category": self.category, "name": self.name}


def _code(table: list[str], text: str) -> int:
    if text not in table:
        table.append(text)
    return table.index(text)


def _name_waits(rank: RankAnalysis, spelled: _Spelled) -> None:
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


def _steps(rank: RankAnalysis, spelled: _Spelled) -> list[dict[str, int]]:
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


def _calls(rank: RankAnalysis, spelled: _Spelled, external: Rows) -> list[dict[str, int]]:
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
                        "shapes": _code(spelled.shapes, f"[[{size}]]"),
                        "types": _code(spelled.types, '["unsigned char"]'),
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


def _plain_lanes(trace: Trace) -> tuple[Lane, ...]:
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


def _arrows(trace: Trace, spelled: _Spelled) -> Flows:
    """Arrows keep their own category, which the plugin reads for nothing."""
    old = [_code(spelled.categories, name) for name in trace.categories]
    codes = np.array(old or [0], np.int16)
    return replace(trace.flows, category=codes[trace.flows.category])
