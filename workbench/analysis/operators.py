"""What the framework's operators cost: on the host by themselves and in all, and on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import operator_rows
from workbench.analysis.launches import Launches
from workbench.analysis.nesting import Nesting, ancestors, depths, innermost, nest
from workbench.analysis.ranges import Range
from workbench.trace.table import DEVICE_WORK, Trace

if TYPE_CHECKING:
    import pandas as pd

OPERATOR_COLUMNS = ("name", "calls", "host_self_ns", "host_total_ns", "device_ns")

Values = NDArray[np.int64]


def operator_table(trace: Trace, launches: Launches, range: Range | None) -> pd.DataFrame:  # noqa: A002
    """Framework operators that begin in the range, one row a name, longest self time first.

    Columns ``name, calls, host_self_ns, host_total_ns, device_ns``. Self time leaves out operators
    called on the same thread, so it sums over all names to the time inside any operator. Total
    and device time contain what was called; an operator that calls one of its own name (a wrapper,
    a re-dispatch, a recursion) is counted once in both, and a direct re-dispatch is one call.
    ``device_ns`` sums the device work launched inside, on whatever stream; it is NaN throughout
    where no device work was recorded.

    Args:
        trace: The event table.
        launches: The join of device work to its launching calls.
        range: A stretch of time; ``None`` for the whole trace.
    """
    found = operator_calls(trace, launches)
    chosen = np.ones(len(found.name), bool)
    if range is not None:
        start = found.nesting.start
        chosen = (start >= range.start) & (start < range.end)
    return _table(
        trace,
        found.name[chosen],
        calls=found.calls[chosen],
        host_self=found.host_self[chosen],
        host_total=found.host_total[chosen],
        device=None if found.device_total is None else found.device_total[chosen],
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorCalls:
    """Every record of a framework operator, thread by thread; columns of equal length."""

    nesting: Nesting
    name: NDArray[np.int32]
    calls: Values
    """1, or 0 for a direct re-dispatch."""
    host_self: Values
    host_total: Values
    """With what was called; of an operator inside one of the same name what reaches beyond it."""
    device_self: Values | None
    """Work launched by the operator itself; ``None`` without device work in the trace."""
    device_total: Values | None
    """Work launched inside; 0 inside an operator of the same name."""


def operator_calls(trace: Trace, launches: Launches) -> OperatorCalls:
    """The records behind the table of operators, for sums over steps or other stretches."""
    events = trace.events
    rows = np.flatnonzero(operator_rows(trace))
    nesting = nest(rows, events.lane[rows], events.ts[rows], events.end[rows])
    name = events.name[nesting.row]
    outermost = _outermost(nesting, name)
    own = nesting.parent >= 0
    redispatch = np.zeros(len(name), bool)
    redispatch[own] = name[nesting.parent[own]] == name[own]
    has_work = len(events.rows(*DEVICE_WORK)) > 0
    device_self = _device_self(trace, launches, nesting) if has_work else None
    device = None if device_self is None else _with_nested(nesting, device_self)
    return OperatorCalls(
        nesting=nesting,
        name=name,
        calls=(~redispatch).astype(np.int64),
        host_self=_self_time(nesting),
        host_total=_own_stretch(nesting, name),
        device_self=device_self,
        device_total=None if device is None else np.where(outermost, device, 0),
    )


def _table(
    trace: Trace,
    name: NDArray[np.int32],
    *,
    calls: Values,
    host_self: Values,
    host_total: Values,
    device: Values | None,
) -> pd.DataFrame:
    import pandas as pd

    codes, index = np.unique(name, return_inverse=True)

    def summed(values: Values) -> Values:
        sums = np.zeros(len(codes), np.int64)
        np.add.at(sums, index, values)
        return sums

    self_ns = summed(host_self)
    names = [trace.names[code] for code in codes]
    order = sorted(np.arange(len(codes)), key=lambda i: (-self_ns[i], names[i]))
    return pd.DataFrame(
        {
            "name": pd.Series([names[i] for i in order], dtype=object),
            "calls": summed(calls)[order],
            "host_self_ns": self_ns[order],
            "host_total_ns": summed(host_total)[order],
            "device_ns": np.full(len(codes), np.nan) if device is None else summed(device)[order],
        },
        columns=list(OPERATOR_COLUMNS),
    )


def _self_time(nesting: Nesting) -> Values:
    """Duration less that of direct children, each cut at its parent's end."""
    own = nesting.end - nesting.start
    child = np.flatnonzero(nesting.parent >= 0)
    parent = nesting.parent[child]
    inside = np.minimum(nesting.end[child], nesting.end[parent]) - nesting.start[child]
    np.subtract.at(own, parent, inside)
    return own


def _outermost(nesting: Nesting, name: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether no enclosing operator has the same name."""
    found = np.ones(len(name), bool)
    for at, above in ancestors(nesting.parent):
        found[at[name[at] == name[above]]] = False
    return found


def _own_stretch(nesting: Nesting, name: NDArray[np.int32]) -> Values:
    """Duration without what lies inside operators of the same name around it.

    Calls that go on in the background (``rpc_async``) begin in one another and end later.
    """
    covered = nesting.start.copy()
    for at, above in ancestors(nesting.parent):
        same = name[at] == name[above]
        within = at[same]
        covered[within] = np.maximum(covered[within], nesting.end[above[same]])
    return np.asarray(np.maximum(nesting.end - covered, 0), np.int64)


def work_holders(trace: Trace, launches: Launches, nesting: Nesting) -> tuple[Values, Values]:
    """All device work, and for each the innermost operator that launched it, or -1."""
    events = trace.events
    work = events.rows(*DEVICE_WORK).astype(np.int64)
    launch = launches.launch[work]
    holder = np.full(len(work), -1, np.int64)
    if not len(nesting.row):
        return work, holder
    known = launch >= 0
    called = launch[known]
    holder[known] = innermost(nesting, events.lane[called], events.ts[called])
    return work, np.where(holder < 0, _by_external_id(trace, nesting, work), holder)


def _device_self(trace: Trace, launches: Launches, nesting: Nesting) -> Values:
    """Per operator, the summed time of the device work that it launched by itself."""
    total = np.zeros(len(nesting.row), np.int64)
    work, holder = work_holders(trace, launches, nesting)
    np.add.at(total, holder[holder >= 0], trace.events.dur[work[holder >= 0]])
    return total


def _with_nested(nesting: Nesting, own: Values) -> Values:
    """Per operator, its own value and those of everything that it called."""
    total = own.copy()
    level = depths(nesting.parent)
    for depth in np.arange(level.max(initial=0), 0, -1):
        at = np.flatnonzero(level == depth)
        np.add.at(total, nesting.parent[at], total[at])
    return total


def _by_external_id(trace: Trace, nesting: Nesting, work: Values) -> Values:
    """The operator whose external id the device work carries, or -1."""
    events = trace.events
    wanted = events.external_id[work]
    ids = events.external_id[nesting.row]
    known = np.flatnonzero(ids > 0)
    if not len(known):
        return np.full(len(work), -1, np.int64)
    known = known[np.argsort(ids[known], kind="stable")]
    place = np.minimum(np.searchsorted(ids[known], wanted), len(known) - 1)
    found = (wanted > 0) & (ids[known][place] == wanted)
    return np.where(found, known[place], -1).astype(np.int64)
