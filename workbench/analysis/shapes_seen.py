"""Whether steps are slow when they meet an input shape for the first time.

The shape of a step is the set of its operators with the shapes of their inputs. A larger input is
slower by itself, so a first sight is compared with later steps *of the same shapes*, never with
other steps.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import operator_rows
from workbench.analysis.steps import Steps
from workbench.trace.table import Trace

NEW_SHARE = 0.1
"""A step is new when so much of what it runs has never run with these shapes (own choice: another
batch shape changes most operators, another loss or a log line only a few)."""
SLOW = 1.5
"""A step is slow from so many times a later step of the same shapes (own choice: well above the
spread between equal steps of a usable machine)."""


@dataclass(frozen=True, kw_only=True)
class ShapesSeen:
    """Step times against the first sight of shapes; the very first step is left out."""

    steps: int
    new_steps: int
    pairs: int
    """Shapes that were seen first and again."""
    slow_pairs: int
    """Of these, the ones whose first step was slow."""
    ratio: float | None
    """Median of first step ÷ median later step of the same shapes."""
    slow_steps: int
    """Steps slower than usual for their shapes, or, seen once, than all steps seen again."""
    slow_new_steps: int
    excess_ns: int
    """Time that the new steps took beyond a usual step."""
    usual_ns: float | None
    """Median of the steps whose shapes had been seen."""


def shapes_seen(trace: Trace, steps: Steps | None) -> ShapesSeen | None:
    """Compare first and later steps of each shape; ``None`` without shapes or step times."""
    if steps is None or len(steps.time_ns) < 2:
        return None
    shapes = _shapes_of_steps(trace, steps)
    if shapes is None:
        return None
    skip = len(steps) - len(steps.time_ns)
    known: set[int] = set()
    new = np.zeros(len(steps), bool)
    for number, own in enumerate(shapes):
        fresh = own - known
        new[number] = len(fresh) >= NEW_SHARE * max(len(own), 1) and bool(fresh)
        known |= own
    kinds = _kinds(shapes, new)
    first = max(skip, 1)
    time = steps.time_ns[first - skip :].astype(np.float64)
    new, kinds = new[first:], kinds[first:]
    return _compared(time, new, kinds)


def _shapes_of_steps(trace: Trace, steps: Steps) -> list[set[int]] | None:
    events = trace.events
    rows = np.flatnonzero(operator_rows(trace) & (events.shapes >= 0))
    if not len(rows):
        return None
    index = steps.step_of(events.ts[rows])
    rows, index = rows[index >= 0], index[index >= 0]
    key = events.name[rows].astype(np.int64) * len(trace.shapes) + events.shapes[rows]
    border = np.searchsorted(
        index, np.arange(len(steps) + 1)
    )  # rows are in time order, so are steps
    return [
        set(np.unique(key[border[number] : border[number + 1]]).tolist())
        for number in range(len(steps))
    ]


def _kinds(shapes: list[set[int]], new: NDArray[Any]) -> NDArray[Any]:
    """Per step, the new step whose shapes it shares most of."""
    kinds = np.arange(len(shapes))
    seen: list[int] = []
    for number, own in enumerate(shapes):
        if new[number] or not seen:
            seen.append(number)
            continue
        overlap = [len(own & shapes[other]) / max(len(own | shapes[other]), 1) for other in seen]
        kinds[number] = seen[int(np.argmax(overlap))]
    return kinds


def _compared(
    time: NDArray[Any],
    new: NDArray[Any],
    kinds: NDArray[Any],
) -> ShapesSeen:
    again = time[~new]
    usual = float(np.median(again)) if len(again) else None
    ratios = []
    limit = np.full(len(time), np.inf if usual is None else SLOW * usual)
    for kind in np.unique(kinds):
        mine = kinds == kind
        later = time[mine & ~new]
        if not len(later):
            continue
        limit[mine] = SLOW * float(np.median(later))
        sights = time[mine & new]
        if len(sights):
            ratios.append(float(sights[0] / max(np.median(later), 1)))
    slow = time >= limit
    return ShapesSeen(
        steps=len(time),
        new_steps=int(new.sum()),
        pairs=len(ratios),
        slow_pairs=int(sum(ratio >= SLOW for ratio in ratios)),
        ratio=float(np.median(ratios)) if ratios else None,
        slow_steps=int(slow.sum()),
        slow_new_steps=int((slow & new).sum()),
        excess_ns=int(np.maximum(time[new] - (usual or 0), 0).sum()) if usual is not None else 0,
        usual_ns=usual,
    )
