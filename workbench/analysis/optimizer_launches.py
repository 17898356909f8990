"""What the optimizer's step costs, and whether it handles its parameters one by one.

torch updates parameters either in one call over many tensors (``_foreach_*``, ``_fused_*``,
compiled code) or in a handful of calls for each of them. The second way shows as operators whose
number grows with the parameters.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.intervals import total, union
from workbench.analysis.launches import Launches
from workbench.analysis.steady import counted_ranges, inside
from workbench.analysis.steps import Steps
from workbench.trace.table import DEVICE_WORK, Kind, Trace

STEP_RANGE = re.compile(r"^Optimizer\.step#")
SINGLE = re.compile(
    r"^aten::(add|mul|sub|div|addcmul|addcdiv|lerp|sqrt|maximum|sign|neg|pow|reciprocal|rsqrt)_?$"
)
"""Operators of the variants of torch.optim that take one tensor at a time."""
BATCHED = re.compile(
    r"_foreach_|_fused_|multi_tensor|^Torch-Compiled|^CompiledFunction|^triton_|^## Call Compiled"
)
"""Operators that take all tensors at once."""
FUSED = re.compile(r"_fused_")
"""The whole update in one operator."""
BACKWARD = re.compile(r"^autograd::engine::evaluate_function")
"""In the optimizer's step only where it calls a closure that trains the model."""


@dataclass(frozen=True, kw_only=True)
class OptimizerLaunches:
    """The optimizer's step in the steps that count."""

    name: str
    """Such as ``Adam.step``."""
    steps: int
    """Calls of the optimizer's step."""
    host_ns: int
    device_ns: int | None
    """Device work launched in it, summed; ``None`` where no device work was recorded."""
    launches: int | None
    single: int
    """Operators that take one tensor."""
    batched: int
    """Operators that take many."""
    tensors: int
    """At least so many tensors a step are updated one by one."""
    closure: bool = False
    """Whether the model is evaluated inside the step, whose time is then not the update's own."""


def optimizer_launches(
    trace: Trace, launches: Launches, steps: Steps | None
) -> OptimizerLaunches | None:
    """Measure the optimizer's steps; ``None`` when the trace marks none.

    Args:
        trace: The event table.
        launches: The join of device work to its launching calls.
        steps: The steps of the loop, if the trace marks any.
    """
    events = trace.events
    rows = _ranges(trace, steps)
    if not len(rows):
        return None
    start, end = events.ts[rows], events.end[rows]
    lane = int(events.lane[rows[0]])
    operators = np.flatnonzero((events.kind == Kind.OPERATOR) & (events.lane == lane))
    operators = operators[inside((start, end), events.ts[operators])]
    fused = operators[_named(trace, operators, FUSED)]
    single = operators[_named(trace, operators, SINGLE)]
    if len(fused):  # beside it, a CPU counts each parameter's steps by an operator of its own
        single = single[:0]
    work = events.rows(*DEVICE_WORK)
    work = work[launches.launch[work] >= 0]
    call = launches.launch[work]
    mine = inside((start, end), events.ts[call]) & (events.lane[call] == lane)
    has_device = len(events.rows(*DEVICE_WORK)) > 0
    return OptimizerLaunches(
        name=trace.names[events.name[rows[0]]].partition("#")[2],
        steps=len(rows),
        host_ns=total(union(start, end)),
        device_ns=int(events.dur[work[mine]].sum()) if has_device else None,
        launches=len(np.unique(call[mine])) if has_device else None,
        single=len(single),
        batched=int(_named(trace, operators, BATCHED).sum()),
        tensors=_tensors(events.name[single], len(rows)),
        closure=_evaluates(trace, (start, end)),
    )


def _evaluates(trace: Trace, ranges: tuple[NDArray[np.int64], NDArray[np.int64]]) -> bool:
    """Whether backward runs inside these ranges, on whatever thread."""
    rows = np.flatnonzero(trace.events.kind == Kind.OPERATOR)
    rows = rows[_named(trace, rows, BACKWARD)]
    return bool(inside(ranges, trace.events.ts[rows]).any())


def _ranges(trace: Trace, steps: Steps | None) -> NDArray[np.intp]:
    """The outermost ranges of ``Optimizer.step`` on the thread that has most of them."""
    events = trace.events
    host = events.of_kind(Kind.ANNOTATION, Kind.OPERATOR)
    named = trace.name_codes(lambda name: STEP_RANGE.match(name) is not None)
    rows = np.flatnonzero(host & np.isin(events.name, named))
    if not len(rows):
        return rows
    lanes, count = np.unique(events.lane[rows], return_counts=True)
    rows = rows[events.lane[rows] == lanes[np.argmax(count)]]
    reach = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(events.end[rows])[:-1]))
    rows = rows[events.end[rows] > reach]
    kept: NDArray[np.intp] = rows[inside(counted_ranges(steps), events.ts[rows])]
    return kept


def _named(trace: Trace, rows: NDArray[np.intp], pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    codes = trace.name_codes(lambda name: pattern.search(name) is not None)
    return np.asarray(np.isin(trace.events.name[rows], codes), bool)


def _tensors(names: NDArray[np.int32], steps: int) -> int:
    """Calls a step of the operator that is called most, twice for each tensor at least by some."""
    _, count = np.unique(names, return_counts=True)
    return int(count.max(initial=0)) // steps
