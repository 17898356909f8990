"""What the model's modules cost: host time, and device time of their forward and backward passes.

A module is a Python stack record ``nn.Module: Linear_0``, written when stacks are recorded; a
module called inside another one is its child. Work of the forward pass is launched inside the
record. That of the backward pass is launched elsewhere: the node of the autograd engine that
launched it answers an operator of the forward pass, the last one with its sequence number, which
lies in the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.host import engine_nodes
from workbench.analysis.nesting import Nesting, depths, innermost, nest
from workbench.trace.table import DEVICE_WORK, Kind, Trace

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.launches import Launches
    from workbench.analysis.ranges import Range

PREFIX = "nn.Module: "
BETWEEN = " > "
"""Between the names of a path."""
MODULE_COLUMNS = (
    *("module", "path", "depth", "calls", "host_self_ns", "host_total_ns"),
    *("device_self_ns", "device_ns", "backward_ns"),
)

Values = NDArray[np.int64]


def module_table(trace: Trace, launches: Launches, range: Range | None) -> pd.DataFrame | None:  # noqa: A002
    """One row a place in the tree of modules, parents before children, longest first among equals.

    ``device_ns`` and ``backward_ns`` sum the device work of the forward and of the backward pass,
    children included; ``device_self_ns`` leaves children out. They are missing where no device work
    was recorded. ``None`` where the trace holds no module.

    Args:
        trace: The event table.
        launches: The join of device work to its launching calls.
        range: Modules that begin in it, on the host's clock; ``None`` for all.
    """
    import pandas as pd

    events = trace.events
    nesting = module_records(trace, range)
    if nesting is None:
        return None
    place, parent, name = _places(nesting, events.name[nesting.row])
    has_work = len(events.rows(*DEVICE_WORK)) > 0
    forward, backward = _device_time(trace, launches, nesting)
    duration = nesting.end - nesting.start
    inner = np.flatnonzero(nesting.parent >= 0)
    own = duration.copy()
    np.subtract.at(own, nesting.parent[inner], duration[inner])
    columns = {
        "calls": _by_place(place, np.ones(len(place), np.int64)),
        "host_self_ns": _by_place(place, own),
        "host_total_ns": _by_place(place, duration),
        "device_self_ns": _by_place(place, forward),
        "device_ns": _upwards(_by_place(place, forward), parent),
        "backward_ns": _upwards(_by_place(place, backward), parent),
    }
    paths = _paths(parent, [trace.names[code].removeprefix(PREFIX) for code in name])
    order = _tree_order(parent, columns["device_ns"] + columns["backward_ns"], columns)
    table = pd.DataFrame(
        {
            "module": [paths[i][-1] for i in order],
            "path": [BETWEEN.join(paths[i]) for i in order],
            "depth": [len(paths[i]) - 1 for i in order],
            **{name: values[order] for name, values in columns.items()},
        },
        columns=list(MODULE_COLUMNS),
    )
    for column in ("device_self_ns", "device_ns", "backward_ns"):
        table[column] = (
            table[column].astype("Int64") if has_work else pd.array([pd.NA] * len(table))
        )
    return table


def module_records(trace: Trace, range: Range | None) -> Nesting | None:  # noqa: A002
    """The calls of modules, those inside others below them; ``None`` without any."""
    events = trace.events
    codes = trace.name_codes(lambda name: name.startswith(PREFIX))
    rows = np.flatnonzero(np.isin(events.name, codes) & (events.kind == Kind.PYTHON))
    if range is not None:
        rows = rows[(events.ts[rows] >= range.start) & (events.ts[rows] < range.end)]
    if not len(rows):
        return None
    return nest(rows, events.lane[rows], events.ts[rows], events.end[rows])


def places_of(trace: Trace, nesting: Nesting) -> tuple[Values, list[str]]:
    """Of each call its place in the tree of modules, and the path of each place."""
    place, parent, name = _places(nesting, trace.events.name[nesting.row])
    paths = _paths(parent, [trace.names[code].removeprefix(PREFIX) for code in name])
    return place, [BETWEEN.join(path) for path in paths]


def _places(nesting: Nesting, name: NDArray[np.int32]) -> tuple[Values, Values, Values]:
    """Place in the tree of each record; parent place and name code of each place."""
    place = np.full(len(name), -1, np.int64)
    level = depths(nesting.parent)
    parents, names = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    made = 0
    for depth in range(int(level.max()) + 1):
        at = np.flatnonzero(level == depth)
        above = np.where(nesting.parent[at] >= 0, place[np.maximum(nesting.parent[at], 0)], -1)
        pair = np.stack((above, name[at].astype(np.int64)))
        distinct, index = np.unique(pair, axis=1, return_inverse=True)
        place[at] = made + index.ravel()
        parents.append(distinct[0])
        names.append(distinct[1])
        made += distinct.shape[1]
    return place, np.concatenate(parents), np.concatenate(names)


def _device_time(trace: Trace, launches: Launches, nesting: Nesting) -> tuple[Values, Values]:
    """Per record, device work that it launched itself, and that of its backward pass."""
    events = trace.events
    work = events.rows(*DEVICE_WORK)
    work = work[launches.launch[work] >= 0]
    call = launches.launch[work].astype(np.int64)
    holder = innermost(nesting, events.lane[call], events.ts[call]).astype(np.int64)
    forward, backward = np.zeros(len(nesting.row), np.int64), np.zeros(len(nesting.row), np.int64)
    np.add.at(forward, holder[holder >= 0], events.dur[work[holder >= 0]])
    rest = holder < 0
    behind = answered(trace, nesting, call[rest])
    known = behind >= 0
    np.add.at(backward, behind[known], events.dur[work[rest][known]])
    return forward, backward


def answered(trace: Trace, nesting: Nesting, call: Values) -> Values:
    """The module whose operator is answered by the engine's node that made each call, or -1."""
    events = trace.events
    nodes = engine_nodes(trace, events.sequence >= 0)
    operators = np.flatnonzero((events.kind == Kind.OPERATOR) & (events.sequence >= 0))
    operators = operators[np.isin(events.lane[operators], np.unique(nesting.lane))]
    running = nest(nodes, events.lane[nodes], events.ts[nodes], events.end[nodes])
    holder = innermost(running, events.lane[operators], events.ts[operators])
    own = np.append(events.sequence[running.row], -1)[holder]
    # A node holds an operator of its own number; a checkpoint's also those that it computes again.
    operators = operators[events.sequence[operators] != own]
    if not len(nodes) or not len(operators) or not len(call):
        return np.full(len(call), -1, np.int64)
    node = innermost(running, events.lane[call], events.ts[call])
    sequence = np.where(node >= 0, events.sequence[running.row[np.maximum(node, 0)]], -1)
    order = np.argsort(events.sequence[operators], kind="stable")
    known = events.sequence[operators][order]
    last = np.searchsorted(known, sequence, "right") - 1
    found = (sequence >= 0) & (last >= 0) & (known[np.maximum(last, 0)] == sequence)
    source = operators[order[np.maximum(last, 0)]]
    module = innermost(nesting, events.lane[source], events.ts[source])
    return np.where(found, module, -1).astype(np.int64)


def _by_place(place: Values, values: Values) -> Values:
    sums = np.zeros(int(place.max()) + 1, np.int64)
    np.add.at(sums, place, values)
    return sums


def _upwards(values: Values, parent: Values) -> Values:
    """Each place with everything below it; a child's number is larger than its parent's."""
    found = values.copy()
    for at in range(len(found) - 1, -1, -1):
        if parent[at] >= 0:
            found[parent[at]] += found[at]
    return found


def _paths(parent: Values, names: list[str]) -> list[tuple[str, ...]]:
    paths: list[tuple[str, ...]] = []
    for above, name in zip(parent.tolist(), names, strict=True):
        paths.append((*(paths[above] if above >= 0 else ()), name))
    return paths


def _tree_order(parent: Values, device: Values, columns: dict[str, Values]) -> list[int]:
    """Parents before their children, the longest child first."""
    children: dict[int, list[int]] = {}
    for at, above in enumerate(parent.tolist()):
        children.setdefault(above, []).append(at)
    host = columns["host_total_ns"]
    order: list[int] = []
    waiting = sorted(children[-1], key=lambda at: (device[at], host[at]))
    while waiting:
        at = waiting.pop()
        order.append(at)
        waiting += sorted(children.get(at, []), key=lambda below: (device[below], host[below]))
    return order
