"""Which operator of a trace answers for which work: each FLOP and each nanosecond once.

Operators call one another (``linear``, ``addmm``); a product that is recorded on three levels is
counted on the innermost one, whose types are those that were computed with. An operator that moves
bytes counts unless something inside it does. Time belongs to the innermost operator that counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.costs.cost import MATRIX_KINDS, Cost
from workbench.analysis.costs.formulas import cost_or_reason
from workbench.analysis.host import engine_nodes
from workbench.analysis.nesting import ancestors, innermost, nest
from workbench.analysis.operators import OperatorCalls, operator_calls

if TYPE_CHECKING:
    from workbench.analysis.launches import Launches
    from workbench.trace.table import Trace

Values = NDArray[np.int64]
Known = Mapping[tuple[str, str], Cost]
"""Costs from a recorder, by operator and shapes as the trace writes them."""
WHOLE = ("normalisation", "softmax", "pooling", "optimizer", "embedding")
"""Kinds that prepare their results with a fill or a copy, and then do their own work."""
WRAPPER = Cost(flops=0, bytes_read=0, bytes_written=0, kind="view")


@dataclass(frozen=True, kw_only=True, eq=False)
class CostedCalls:
    """Every operator record, with the group of like calls that it belongs to."""

    found: OperatorCalls
    group: Values
    """Per record: position in ``keys``."""
    keys: tuple[tuple[str, str | None], ...]
    """Operator and shapes of each group."""
    costs: tuple[Cost | str, ...]
    """What one call of each group costs, or why nobody knows."""
    counted: NDArray[np.bool_]
    """Per record: whether its cost counts; of the others it is in what they call."""
    again: NDArray[np.bool_]
    """Per record: whether it repeats, in the backward pass, what the forward pass computed."""
    strides: tuple[str | None, ...]
    """Of each group the strides of its inputs, as JSON."""
    owner: Values
    """Per record: the record that its own time belongs to; itself where none around it counts."""


def costed_calls(trace: Trace, launches: Launches, known: Known | None = None) -> CostedCalls:
    """Give every operator record its cost, and decide which of nested ones counts."""
    found = operator_calls(trace, launches)
    row = found.nesting.row
    events = trace.events
    columns = (events.name, events.shapes, events.types, events.values, events.strides)
    table = np.stack([column[row].astype(np.int64) for column in columns]).T
    kinds, group = (
        np.unique(table, axis=0, return_inverse=True)
        if len(row)
        else (np.empty((0, 5), np.int64), np.empty(0, np.int64))
    )
    keys, costs, apart = [], [], []
    for name, shapes, types, values, strides in kinds.tolist():
        operator = trace.names[name]
        text = trace.shapes[shapes] if shapes >= 0 else None
        keys.append((operator, text))
        more = {
            "values": trace.values[values] if values >= 0 else None,
            "strides": trace.strides[strides] if strides >= 0 else None,
        }
        cost = cost_or_reason(operator, text, trace.types[types] if types >= 0 else None, more)
        if isinstance(cost, str) and known:
            cost = known.get((operator, text or ""), cost)
        costs.append(cost)
        apart.append(more["strides"])
    group = group.ravel().astype(np.int64)
    counted, owner = _counted(found, group, costs)
    return CostedCalls(
        found=found,
        group=group,
        keys=tuple(keys),
        costs=tuple(costs),
        counted=counted,
        again=_again(trace, found),
        strides=tuple(apart),
        owner=owner,
    )


def _again(trace: Trace, found: OperatorCalls) -> NDArray[np.bool_]:
    """Operators of a node of the engine with a number that is not the node's: a checkpoint's.

    In a backward pass nothing is recorded for another one, so that what has a number of its own
    there is a forward pass that runs again.
    """
    events, nesting = trace.events, found.nesting
    number = events.sequence[nesting.row]
    nodes = engine_nodes(trace, events.sequence >= 0)
    again = np.zeros(len(number), bool)
    if not len(nodes) or not len(number):
        return again
    running = nest(nodes, events.lane[nodes], events.ts[nodes], events.end[nodes])
    holder = innermost(running, nesting.lane, nesting.start)
    node = np.where(holder >= 0, events.sequence[running.row[np.maximum(holder, 0)]], -1)
    again = np.asarray((holder >= 0) & (number >= 0) & (number != node), bool)
    for at, above in ancestors(nesting.parent):
        again[at] |= again[above]
    return again


def _counted(
    found: OperatorCalls, group: Values, costs: list[Cost | str]
) -> tuple[NDArray[np.bool_], Values]:
    matrix = np.array([isinstance(c, Cost) and c.kind in MATRIX_KINDS for c in costs], bool)
    moves = np.array([isinstance(c, Cost) and c.kind != "view" for c in costs], bool)
    if not len(group):
        return np.zeros(0, bool), np.zeros(0, np.int64)
    parent = found.nesting.parent
    own_matrix, own_moves = matrix[group], moves[group]
    whole = np.array([isinstance(c, Cost) and c.kind in WHOLE for c in costs], bool)[group]
    plain = np.array([isinstance(c, Cost) and c.kind in ("copy", "fill") for c in costs], bool)
    holds_matrix, holds_moves = np.zeros(len(group), bool), np.zeros(len(group), bool)
    for at, above in ancestors(parent):
        holds_matrix[above[own_matrix[at]]] = True
        inner = own_moves[at] & ~(whole[above] & plain[group[at]])
        holds_moves[above[inner]] = True
    alone = ~holds_moves
    if found.device_self is not None:  # what launched a kernel by itself computed something
        alone |= found.device_self > 0
    counted = own_moves & np.where(own_matrix, ~holds_matrix, alone)
    owner = np.arange(len(group), dtype=np.int64)
    settled = counted.copy()
    for at, above in ancestors(parent):
        taking = at[~settled[at] & counted[above]]
        owner[taking] = above[~settled[at] & counted[above]]
        settled[taking] = True
    return counted, owner
