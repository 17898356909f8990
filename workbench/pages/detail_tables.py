"""Tables for pages: single steps, launches, copies, phases, modules and shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.figures.copies import way
from workbench.figures.palette import category
from workbench.pages.frames import LIMIT, from_frame
from workbench.pages.table import Column, Kind, Table
from workbench.units import count_text, time_text

if TYPE_CHECKING:
    import pandas as pd

Wanted = tuple[tuple[str, str, Kind], ...]

_LAUNCHES: Wanted = (
    ("device", "device", "text"),
    ("stream", "stream", "text"),
    ("calls", "launches", "count"),
    ("graph_calls", "of graphs", "count"),
    ("kernels", "kernels", "count"),
    ("per_step", "a step", "number"),
    ("delay_median_ns", "median delay", "time"),
    ("delay_p95_ns", "95 % below", "time"),
    ("short_share", "short kernels", "share"),
    ("queue_mean", "mean queue", "number"),
    ("queue_most", "longest", "count"),
    ("queue_empty_share", "queue empty", "share"),
)
_COPIES: Wanted = (
    ("way", "copy", "text"),
    ("device", "device", "text"),
    ("calls", "calls", "count"),
    ("bytes", "bytes", "bytes"),
    ("total_ns", "total", "time"),
    ("gb_s", "GB/s", "number"),
    ("exposed_ns", "exposed", "time"),
    ("hidden_share", "hidden", "share"),
)
_PHASES: Wanted = (
    ("phase", "phase", "text"),
    ("host_ns", "host", "time"),
    ("device_ns", "device", "time"),
    ("launches", "launches", "number"),
    ("operators", "operators", "number"),
)
_MODULES: Wanted = (
    ("shown", "module", "name"),
    ("calls", "calls", "count"),
    ("host_total_ns", "host", "time"),
    ("host_self_ns", "host, itself", "time"),
    ("device_ns", "device, forward", "time"),
    ("backward_ns", "device, backward", "time"),
)
_SHAPES: Wanted = (
    ("name", "operator", "name"),
    ("shapes", "shapes", "name"),
    ("calls", "calls", "count"),
    ("host_self_ns", "host, itself", "time"),
    ("device_ns", "device, with nested", "time"),
)
_GROUPS: Wanted = (
    ("group", "group", "name"),
    ("ranks", "its ranks", "name"),
    ("dtype", "type", "name"),
    ("collectives", "collectives", "text"),
    ("calls", "calls", "count"),
    ("bytes", "bytes", "bytes"),
    ("total_ns", "total", "time"),
    ("exposed_ns", "exposed", "time"),
    ("hidden_ns", "hidden", "time"),
    ("wait_ns", "waits for ranks", "time"),
)


def launches_table(frame: "pd.DataFrame") -> Table:
    """Launches by device and stream."""
    shown = frame.assign(
        stream=frame["stream"].astype(object).where(frame["stream"].notna(), "all")
    )
    return from_frame("Launches of kernels", shown, _LAUNCHES, LIMIT)


def copies_table(frame: "pd.DataFrame") -> Table:
    """Copies and sets by kind and host memory."""
    ways = [
        way(kind, memory if isinstance(memory, str) else None)
        for kind, memory in zip(frame["kind"], frame["host_memory"], strict=True)
    ]
    return from_frame("Copies and sets in the window", frame.assign(way=ways), _COPIES, LIMIT)


def phases_table(frame: "pd.DataFrame") -> Table:
    """Forward, backward and optimizer, per step where steps are marked."""
    marked = bool((frame["steps"] > 0).all())
    names = ["host_ns", "device_ns", "launches", "operators"]
    per = frame["steps"].where(frame["steps"] > 0, 1)
    shown = frame.assign(**{name: frame[name].astype("Float64") / per for name in names})
    caption = "Phases, mean of a step" if marked else "Phases in the window"
    return from_frame(caption, shown, _PHASES, LIMIT)


def modules_table(frame: "pd.DataFrame", *, limit: int = 2 * LIMIT) -> Table:
    """The tree of modules, children indented below their parents."""
    shown = [
        "\u00a0\u00a0" * depth + name
        for depth, name in zip(frame["depth"], frame["module"], strict=True)
    ]
    return from_frame("Modules in the window", frame.assign(shown=shown), _MODULES, limit)


def groups_table(frame: "pd.DataFrame") -> Table:
    """Collectives by process group and type of the elements."""
    return from_frame("Process groups in the window", frame, _GROUPS, LIMIT)


def shapes_table(frame: "pd.DataFrame", *, limit: int = LIMIT) -> Table:
    """Operators by shapes, by device time where it was measured, else by their own host time."""
    by = ["device_ns", "host_self_ns"]
    ranked = frame.sort_values(by, ascending=False, kind="stable", na_position="last")
    left = max(0, len(frame) - limit)
    shown = ranked.head(limit).copy()
    shown["shapes"] = shown["shapes"].map(_without_scalars)
    return replace(from_frame("Operators by shapes", shown, _SHAPES, limit), left_out=left)


def outliers_table(frame: "pd.DataFrame", *, limit: int = LIMIT) -> Table:
    """Steps that take far longer than the others, and what was different in them."""
    rows = []
    for record in frame.head(limit).to_dict("records"):
        rank = [f"{record['rank']}"] if "rank" in frame.columns else []
        rows.append(
            (*rank, str(record["step"]), record["time_ns"], record["excess_ns"], _differs(record))
        )
    columns = (
        *([Column(name="rank", kind="value")] if "rank" in frame.columns else []),
        Column(name="step", kind="value"),
        Column(name="time", kind="time"),
        Column(name="beyond the median", kind="time"),
        Column(name="what was different", kind="name"),
    )
    left = max(0, len(frame) - limit)
    return Table(
        caption="Steps that take far longer", columns=columns, rows=tuple(rows), left_out=left
    )


def step_parts_table(
    parts_ns: Mapping[str, NDArray[np.int64] | None],
    length_ns: NDArray[np.int64],
    numbers: Sequence[int],
    *,
    limit: int = LIMIT,
) -> Table:
    """One row a step, a column for each part that any step has."""
    present = [
        (name, values) for name, values in parts_ns.items() if values is None or values.any()
    ]
    rows = tuple(
        (
            str(number),
            int(length_ns[at]),
            *(None if values is None else int(values[at]) for _, values in present),
        )
        for at, number in enumerate(numbers[:limit])
    )
    columns = (
        Column(name="step", kind="value"),
        Column(name="step time", kind="time"),
        *(Column(name=category(name).label, kind="time") for name, _ in present),
    )
    left = max(0, len(numbers) - limit)
    return Table(caption="Every step by parts", columns=columns, rows=rows, left_out=left)


def rank_steps_table(
    values_ns: NDArray[np.float64], ranks: Sequence[str], steps: Sequence[int], *, limit: int = 12
) -> Table:
    """One row a rank, a column a step."""
    rows = tuple(
        (rank, *(None if np.isnan(ns) else float(ns) for ns in row[:limit]), float(np.nansum(row)))
        for rank, row in zip(ranks, values_ns, strict=True)
    )
    columns = (
        Column(name="rank", kind="name"),
        *(Column(name=f"step {step}", kind="time") for step in steps[:limit]),
        Column(name="all steps", kind="time"),
    )
    return Table(caption="Ranks step by step", columns=columns, rows=rows)


def _without_scalars(shapes: object) -> str | None:
    """Shapes without the empty ones at their end, which are numbers and flags."""
    if not isinstance(shapes, str):
        return None
    text = shapes.removesuffix("]")
    while text.endswith(",[]"):
        text = text.removesuffix(",[]")
    return f"{text}]"


def _differs(record: Mapping[Any, Any]) -> str:
    said = [f"{category(name).label} + {time_text(ns)}" for name, ns in record["grew"]]
    if isinstance(record["gap_cause"], str):
        inside = f" in {record['gap_host']}" if isinstance(record["gap_host"], str) else ""
        cause = category(record["gap_cause"]).label
        said.append(f"longest gap {time_text(record['gap_ns'])}, {cause}{inside}")
    garbage = record["garbage_ns"]
    if isinstance(garbage, int | np.integer) and garbage > 0:
        said.append(f"garbage collected for {time_text(int(garbage))}")
    for name, what in (
        ("new_kernels", "new kernel"),
        ("new_shapes", "new shape"),
        ("only_here", "operator of no other step"),
    ):
        found = record[name]
        if found:
            more = f" and {count_text(len(found) - 1)} more" if len(found) > 1 else ""
            said.append(f"{what} {found[0]}{more}")
    return " · ".join(said) or "nothing that this trace shows"
