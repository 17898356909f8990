"""Time, FLOPs and bytes by module, forward and backward: a tree whose leaves sum to the step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.communication_names import is_communication
from workbench.analysis.costs.cost import Cost
from workbench.analysis.costs.placing import (
    BACKWARD,
    FORWARD,
    OPTIMIZER,
    Path,
    Placed,
    placed_by_step,
    placed_by_trace,
)
from workbench.analysis.modules import BETWEEN
from workbench.analysis.operators import work_holders
from workbench.analysis.steady import counted_ranges, inside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from workbench.analysis.costs.calls import CostedCalls
    from workbench.analysis.launches import Launches
    from workbench.analysis.steps import Steps
    from workbench.trace.table import Trace

Values = NDArray[np.int64]
OUTSIDE = "(outside modules)"
IN_OPTIMIZER = "(optimizer)"
MEASURES = ("time_ns", "flops", "bytes")
BY_MODULE_COLUMNS = (
    *("module", "path", "depth", "time_ns", "self_ns", "forward_ns", "backward_ns"),
    *("flops", "forward_flops", "backward_flops", "bytes", "forward_bytes", "backward_bytes"),
    "counted_share",
)
LEAST_PLACED = 0.5
"""Own choice: a way that places less of the counted time than this tells too little."""


def module_costs(
    trace: Trace,
    launches: Launches,
    steps: Steps | None,
    calls: CostedCalls,
    *,
    noted: Sequence[Mapping[str, Any]] | None = None,
    modules: Sequence[str] = (),
) -> pd.DataFrame | None:
    """One row a module, parents before children, longest first; ``None`` where no module is known.

    Sums are over the steps that count and hold the children; ``self_ns`` leaves them out. What
    belongs to no module has rows of its own, so that rows of depth 0 sum to all time of operators
    (on a device: all device work that an operator launched). ``counted_share`` is the part of the
    time whose operators were counted: FLOPs and bytes of a low one are lower bounds.
    ``attrs["source"]`` says who told the modules.

    Args:
        trace: The event table.
        launches: The join of device work to its launching calls.
        steps: The steps; ``None`` for the whole trace.
        calls: The counted operators.
        noted: The calls of one more step, where it was run.
        modules: The paths that those calls name by number.
    """
    time = operator_times(trace, launches, steps, calls)
    total = int(time.sum())
    if not total:
        return None
    ways = [placed_by_step(calls, steps, noted, modules) if noted else None]
    ways.append(placed_by_trace(trace, calls))
    for placed in ways:
        if placed is not None and time[placed.phase >= 0].sum() >= LEAST_PLACED * total:
            return _table(calls, placed, time, _chosen(calls, steps))
    return None


def _chosen(calls: CostedCalls, steps: Steps | None) -> NDArray[np.bool_]:
    return inside(counted_ranges(steps), calls.found.nesting.start)


def operator_times(
    trace: Trace, launches: Launches, steps: Steps | None, calls: CostedCalls
) -> Values:
    """Per record the nanoseconds that it answers for in the steps that count.

    Device time of what it launched, without communication; host time where no device worked.
    """
    ranges = counted_ranges(steps)
    spent = np.zeros(len(calls.group), np.int64)
    work, holder = work_holders(trace, launches, calls.found.nesting)
    if not len(work):
        chosen = _chosen(calls, steps)
        np.add.at(spent, calls.owner[chosen], calls.found.host_self[chosen])
        return spent
    events, launch = trace.events, launches.launch[work]
    moved = np.array([is_communication(name) for name in trace.names], bool)[events.name[work]]
    kept = (holder >= 0) & (launch >= 0) & ~moved
    kept &= inside(ranges, events.ts[np.maximum(launch, 0)])
    np.add.at(spent, calls.owner[holder[kept]], events.dur[work[kept]].astype(np.int64))
    return spent


def _table(
    calls: CostedCalls, placed: Placed, time: Values, chosen: NDArray[np.bool_]
) -> pd.DataFrame:
    import pandas as pd

    costs = [cost if isinstance(cost, Cost) else None for cost in calls.costs]
    flops = np.array([0 if cost is None else cost.flops for cost in costs], np.int64)
    moved = np.array([0 if cost is None else cost.bytes for cost in costs], np.int64)
    known = np.array([cost is not None for cost in costs], bool)
    does = calls.counted & chosen
    values = {
        "time_ns": time,
        "flops": np.where(does, flops[calls.group], 0),
        "bytes": np.where(does, moved[calls.group], 0),
        "counted": np.where(known[calls.group], time, 0),
    }
    sums = _sums(placed, values, OPTIMIZER)
    rows = [_row(path, sums) for path in _ordered(sums)]
    made = pd.DataFrame(rows, columns=list(BY_MODULE_COLUMNS))
    made.attrs["source"] = placed.source
    return made


def _sums(
    placed: Placed, values: dict[str, Values], optimizer: int
) -> dict[Path, dict[tuple[str, int], int]]:
    """By path, measure and phase, children included; phase -1 is the module without children."""
    sums: dict[Path, dict[tuple[str, int], int]] = {}
    phase = np.where(placed.phase < 0, FORWARD, placed.phase)
    for module in np.unique(placed.module).tolist():
        for number in (FORWARD, BACKWARD, OPTIMIZER):
            here = (placed.module == module) & (phase == number)
            amounts = {name: int(column[here].sum()) for name, column in values.items()}
            if not any(amounts.values()):
                continue
            path = placed.paths[module] if module >= 0 else (OUTSIDE,)
            path = (IN_OPTIMIZER,) if number == optimizer else path
            for depth in range(1, len(path) + 1):
                place = sums.setdefault(path[:depth], {})
                for name, amount in amounts.items():
                    place[name, number] = place.get((name, number), 0) + amount
            own = sums[path]
            own["time_ns", -1] = own.get(("time_ns", -1), 0) + amounts["time_ns"]
    return sums


def _ordered(sums: dict[Path, dict[tuple[str, int], int]]) -> list[Path]:
    """Parents before their children, the longest first."""
    children: dict[Path, list[Path]] = {}
    for path in sums:
        children.setdefault(path[:-1], []).append(path)
    order: list[Path] = []
    waiting = sorted(children.get((), []), key=lambda path: _all(sums[path], "time_ns"))
    while waiting:
        path = waiting.pop()
        order.append(path)
        below = children.get(path, [])
        waiting += sorted(below, key=lambda each: _all(sums[each], "time_ns"))
    return order


def _all(own: dict[tuple[str, int], int], name: str) -> int:
    return sum(own.get((name, phase), 0) for phase in (FORWARD, BACKWARD, OPTIMIZER))


def _row(path: Path, sums: dict[Path, dict[tuple[str, int], int]]) -> dict[str, Any]:
    own = sums[path]
    row: dict[str, Any] = {"module": path[-1], "path": BETWEEN.join(path), "depth": len(path) - 1}
    row["self_ns"] = own.get(("time_ns", -1), 0)
    for name in MEASURES:
        short = name.removeprefix("time_")
        row[name] = _all(own, name)
        row[f"forward_{short}"] = own.get((name, FORWARD), 0)
        row[f"backward_{short}"] = own.get((name, BACKWARD), 0)
    time = row["time_ns"]
    row["counted_share"] = _all(own, "counted") / time if time else float("nan")
    return row
