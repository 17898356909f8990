"""Steps of the training loop in a snapshot: ranges that torch noted, else the optimizer's work."""

import re

import numpy as np

from workbench.analysis.memory.allocations import StepRanges
from workbench.analysis.snapshots.owners import asker
from workbench.analysis.snapshots.snapshot import Action, Snapshot

_STEP = re.compile(r"ProfilerStep\s*#\s*(\d{1,18})$")
LEAST_STEPS = 2


def snapshot_steps(snapshot: Snapshot) -> StepRanges | None:
    """When steps ran; ``None`` where neither a noted range nor an optimizer tells."""
    return _noted(snapshot) or _by_optimizer(snapshot)


def _noted(snapshot: Snapshot) -> StepRanges | None:
    open_: dict[int, int] = {}
    found: list[tuple[int, int, int]] = []
    for each in snapshot.annotations:
        match = _STEP.match(each.name)
        if match is None:
            continue
        number = int(match[1])
        if each.begins:
            open_[number] = each.at_ns
        elif number in open_:
            found.append((open_.pop(number), each.at_ns, number))
    return _ranges(found, "profiler_step")


def _by_optimizer(snapshot: Snapshot) -> StepRanges | None:
    """A step ends where the optimizer's work does: other work follows, or the snapshot ends."""
    of_optimizer = np.array([asker(stack).phase == "optimizer" for stack in snapshot.stacks], bool)
    rows = np.flatnonzero(np.isin(snapshot.action, (Action.ALLOC, Action.FREE_COMPLETED)))
    known = snapshot.stack[rows] >= 0
    rows = rows[known]
    if not len(rows) or not of_optimizer.any():
        return None
    mine = of_optimizer[snapshot.stack[rows]]
    ends = np.flatnonzero(mine & ~np.append(mine[1:], False))
    at = snapshot.ts[rows[ends]] + 1
    begin = np.append(int(snapshot.ts[0]), at[:-1])
    pairs = zip(begin.tolist(), at.tolist(), range(1, len(at) + 1), strict=True)
    return _ranges([each for each in pairs if each[1] > each[0]], "optimizer")


def _ranges(found: list[tuple[int, int, int]], source: str) -> StepRanges | None:
    if len(found) < LEAST_STEPS:
        return None
    start, end, numbers = zip(*sorted(found), strict=True)
    return StepRanges(
        start=np.array(start, np.int64),
        end=np.array(end, np.int64),
        numbers=tuple(numbers),
        source=source,
    )
