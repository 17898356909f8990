"""Tables for pages out of the DataFrames and numbers that analyses return."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.figures.palette import category
from workbench.figures.steps import P95_NEEDS
from workbench.pages.table import Column, Kind, Table

if TYPE_CHECKING:
    import pandas as pd

LIMIT = 30

Times = Sequence[float] | NDArray[np.int64]
"""Nanoseconds, a value a step."""

_KERNELS: tuple[tuple[str, str, Kind], ...] = (
    ("name", "kernel", "name"),
    ("device", "device", "text"),
    ("family", "family", "text"),
    ("calls", "calls", "count"),
    ("total_ns", "total", "time"),
    ("median_ns", "median", "time"),
    ("share", "share", "share"),
    ("tensor_core", "tensor cores", "flag"),
    ("occupancy", "occupancy", "share"),
    ("registers", "registers", "number"),
)
_FAMILIES: tuple[tuple[str, str, Kind], ...] = (
    ("family", "family", "text"),
    ("device", "device", "text"),
    ("kernels", "kernels", "count"),
    ("calls", "calls", "count"),
    ("total_ns", "total", "time"),
    ("share", "share", "share"),
    ("tensor_core_share", "on tensor cores", "share"),
    ("occupancy", "occupancy", "share"),
)
_UNRECORDED = ("occupancy", "registers")
"""Columns left out where no kernel records them."""
_OPERATORS: tuple[tuple[str, str, Kind], ...] = (
    ("name", "operator", "name"),
    ("calls", "calls", "count"),
    ("host_self_ns", "host, itself", "time"),
    ("host_total_ns", "host, with nested", "time"),
    ("device_ns", "device, with nested", "time"),
)

_COLLECTIVES: tuple[tuple[str, str, Kind], ...] = (
    ("collective", "collective", "text"),
    ("group", "process group", "name"),
    ("calls", "calls", "count"),
    ("dtype", "type", "name"),
    ("bytes", "bytes", "bytes"),
    ("total_ns", "total", "time"),
    ("exposed_ns", "exposed", "time"),
    ("wait_ns", "waits for ranks", "time"),
    ("transfer_ns", "transfer", "time"),
    ("bus_gb_s", "bus GB/s", "number"),
)


def kernels_table(frame: "pd.DataFrame", *, limit: int = LIMIT) -> Table:
    """Kernels by total time, longest first."""
    ranked = frame.sort_values("total_ns", ascending=False, kind="stable")
    return from_frame("Kernels", _recorded(ranked), _KERNELS, limit)


def families_table(frame: "pd.DataFrame", *, limit: int = LIMIT) -> Table:
    """Families of kernels by total time; what nobody could classify is the family ``other``."""
    return from_frame("Kernels by family", _recorded(frame), _FAMILIES, limit)


def _recorded(frame: "pd.DataFrame") -> "pd.DataFrame":
    empty = [name for name in _UNRECORDED if name in frame and frame[name].isna().all()]
    return frame.drop(columns=empty)


def operators_table(frame: "pd.DataFrame", *, limit: int = LIMIT) -> Table:
    """Operators by device time where it was measured, else by their own host time."""
    by = ["device_ns", "host_self_ns"]
    ranked = frame.sort_values(by, ascending=False, kind="stable", na_position="last")
    return from_frame("Operators", ranked, _OPERATORS, limit)


def collectives_table(frame: "pd.DataFrame", *, limit: int = LIMIT) -> Table:
    """Collectives by kind and process group, longest first."""
    return from_frame("Collectives in the window", frame, _COLLECTIVES, limit)


def ranks_table(frame: "pd.DataFrame") -> Table:
    """One row a rank, times of a step; what a rank did not measure is said."""
    fixed: list[tuple[str, str, Kind]] = [
        ("rank", "rank", "text"),
        ("step_ns", "step", "time"),
        ("wait_ns", "waits for others", "time"),
        ("transfer_ns", "moves data", "time"),
    ]
    known = {name for name, _, _ in fixed}
    phases = [name for name in frame.columns if name not in known]
    wanted = [
        *(each for each in fixed if each[0] in frame.columns),
        *((name, category(name).label, "time") for name in phases),
    ]
    shown = frame[[name for name, _, _ in wanted]].astype(object)
    return Table(
        caption="Ranks, per step",
        columns=tuple(Column(name=title, kind=kind) for _, title, kind in wanted),
        rows=tuple(tuple(row) for row in shown.itertuples(index=False, name=None)),
    )


def steps_table(
    step_ns: Times, *, warmup: int, input_ns: Times | None, caption: str = "Step times"
) -> Table:
    """Step statistics, warm-up left out; the 95th percentile from 20 steps on."""
    steady = np.asarray(step_ns, dtype=np.float64)[warmup:]
    rows: list[tuple[object, ...]] = [("step time", *_statistics(steady))]
    if input_ns is not None and len(input_ns) == len(step_ns):
        waits = np.asarray(input_ns, dtype=np.float64)[warmup:]
        rows.append(("of it waiting for data", *_statistics(waits)))
    columns = (
        Column(name=""),
        Column(name="steps", kind="count"),
        *(Column(name=name, kind="time") for name in ("median", "mean", "95 % below", "shortest")),
        Column(name="longest", kind="time"),
    )
    return Table(caption=caption, columns=columns, rows=tuple(rows))


def waits_table(
    step_ns: Times,
    input_ns: Times,
    *,
    warmup: int = 0,
    numbers: Sequence[int] | None = None,
    limit: int = LIMIT,
) -> Table:
    """The first steps after warm-up with their wait for data."""
    counted = range(len(step_ns)) if numbers is None else numbers
    pairs = list(zip(counted, step_ns, input_ns, strict=True))[warmup:]
    rows = tuple((str(step), wait, ns, wait / ns if ns else None) for step, ns, wait in pairs)
    columns = (
        Column(name="step", kind="value"),
        Column(name="wait for data", kind="time"),
        Column(name="step time", kind="time"),
        Column(name="share", kind="share"),
    )
    left = max(0, len(rows) - limit)
    return Table(caption="Waiting for data", columns=columns, rows=rows[:limit], left_out=left)


def idle_table(by_cause: Mapping[str, int | None], window_ns: int) -> Table:
    """Idle time of a device by cause; what the trace cannot hold is not measured."""
    ranked = sorted(by_cause.items(), key=lambda item: -(item[1] or 0))
    rows = tuple(
        (category(name).label, ns, None if ns is None or window_ns <= 0 else ns / window_ns)
        for name, ns in ranked
    )
    columns = (
        Column(name="cause of idle"),
        Column(name="time", kind="time"),
        Column(name="share of the window", kind="share"),
    )
    return Table(caption="Idle time by cause", columns=columns, rows=rows)


def _statistics(values: NDArray[np.float64]) -> tuple[object, ...]:
    if not len(values):
        return (0, *["needs 2 steps"] * 5)
    enough = len(values) >= P95_NEEDS
    p95 = float(np.percentile(values, 95)) if enough else f"needs {P95_NEEDS} steps"
    low, high = float(values.min()), float(values.max())
    return (len(values), float(np.median(values)), float(values.mean()), p95, low, high)


def from_frame(
    caption: str, frame: "pd.DataFrame", wanted: Sequence[tuple[str, str, Kind]], limit: int
) -> Table:
    """The first rows of a frame: of each wanted column its name, its title and its kind."""
    present = [each for each in wanted if each[0] in frame.columns]
    if "rank" in frame.columns:
        present.insert(1, ("rank", "rank", "text"))
    shown = frame.head(limit)[[name for name, _, _ in present]].astype(object)
    return Table(
        caption=caption,
        columns=tuple(Column(name=title, kind=kind) for _, title, kind in present),
        rows=tuple(tuple(row) for row in shown.itertuples(index=False, name=None)),
        left_out=max(0, len(frame) - limit),
    )
