"""Memory that grows from step to step, and how much of it casts of autocast have kept.

Autocast keeps the cast of a weight until its outermost region ends. A cast whose memory was taken
inside ``aten::_to_copy`` and that is not given back before the step is over was kept.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.memory import CPU
from workbench.analysis.steps import Steps
from workbench.trace.table import Kind, Trace

CAST = re.compile(r"^aten::_to_copy$")
LEAST_STEPS = 5
"""Own choice: fewer steps do not tell growth from the coming and going of batches."""


@dataclass(frozen=True, kw_only=True)
class KeptCasts:
    """Live memory at the ends of steps, on the device where it grows most."""

    steps: int
    rising: int
    """Steps that end with more than the one before."""
    growth_bytes: float
    """Median growth from one end to the next."""
    kept_bytes: float
    """Median bytes a step that casts took and nobody gave back in it."""
    kept_casts: float
    """Median number of them."""
    live_bytes: int
    """At the end of the last step."""


def kept_casts(trace: Trace, steps: Steps | None) -> KeptCasts | None:
    """Compare growth and casts; ``None`` without memory records or with too few steps."""
    memory = trace.memory
    if steps is None or len(steps) < LEAST_STEPS or not len(memory.ts):
        return None
    kinds = memory.device_type != CPU
    chosen = kinds if kinds.any() else ~kinds
    chosen &= memory.total_allocated >= 0
    at = memory.ts[chosen]
    if not len(at):
        return None
    order = np.argsort(at, kind="stable")
    at, total = at[order], memory.total_allocated[chosen][order]
    last = np.searchsorted(at, steps.end, "left") - 1
    if (last < 0).any():
        return None
    live = total[last]
    grown = np.diff(live)
    kept = _kept(trace, steps, np.flatnonzero(chosen)[order])
    sizes, counts = kept
    return KeptCasts(
        steps=len(steps),
        rising=int((grown > 0).sum()),
        growth_bytes=float(np.median(grown)),
        kept_bytes=float(np.median(sizes[1:])),
        kept_casts=float(np.median(counts[1:])),
        live_bytes=int(live[-1]),
    )


def _kept(
    trace: Trace, steps: Steps, rows: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per step, bytes and number of allocations inside casts that outlive the step."""
    events, memory = trace.events, trace.memory
    codes = trace.name_codes(lambda name: CAST.match(name) is not None)
    casts = np.flatnonzero((events.kind == Kind.OPERATOR) & np.isin(events.name, codes))
    casts = casts[np.argsort(events.ts[casts], kind="stable")]
    sizes, counts = np.zeros(len(steps), np.int64), np.zeros(len(steps), np.int64)
    open_: dict[int, tuple[int, int]] = {}
    step_of = np.searchsorted(steps.start, memory.ts[rows], "right") - 1
    inside = _inside(trace, casts, rows)
    taken = inside & (memory.bytes[rows] > 0)
    worth = taken | np.isin(memory.address[rows], np.unique(memory.address[rows[taken]]))
    rows, step_of, inside = rows[worth], step_of[worth], inside[worth]
    for row, step, mine in zip(rows.tolist(), step_of.tolist(), inside.tolist(), strict=True):
        size, place = int(memory.bytes[row]), int(memory.address[row])
        if size > 0 and mine and 0 <= step < len(steps):
            open_[place] = (step, size)
            sizes[step] += size
            counts[step] += 1
        elif size < 0 and open_.get(place, (-1, 0))[0] == step:
            sizes[step] -= open_.pop(place)[1]
            counts[step] -= 1
    return sizes, counts


def _inside(trace: Trace, casts: NDArray[np.intp], rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether each memory record lies in a cast on its thread."""
    events, memory = trace.events, trace.memory
    found = np.zeros(len(rows), bool)
    for lane in np.unique(events.lane[casts]).tolist():
        mine = casts[events.lane[casts] == lane]
        here = np.flatnonzero(memory.lane[rows] == lane)
        at = memory.ts[rows[here]]
        index = np.searchsorted(events.ts[mine], at, "right") - 1
        reach = np.maximum.accumulate(events.end[mine])
        found[here] = (index >= 0) & (at < reach[np.maximum(index, 0)])
    return found
