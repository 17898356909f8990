"""What loader workers do to a comparison: times in rounds, and operators that nobody sees."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.run.run import Run

APART = 0.05
"""Own choice: a pace that is so far from the median of single steps is explained."""


def of_workers(runs: tuple[Run, Run], names: tuple[str, str]) -> tuple[str, ...]:
    """A sentence each, where it applies."""
    said = []
    evened = [name for run, name in zip(runs, names, strict=True) if _evened(run)]
    if evened:
        said.append(
            f"Workers bring several batches together, so of {' and '.join(evened)} every step is "
            "the mean of its neighbours here: its median is the loop's pace, not that of single "
            "steps."
        )
    first, second = (
        None if run.record is None else run.record.effective.get("workers") for run in runs
    )
    if first is not None and second is not None and (first == 0) != (second == 0):
        name = names[0] if first else names[1]
        said.append(
            f"The loader of {name} works in processes of its own, which the profiler does not see: "
            "its operators are missing there, not gone."
        )
    return tuple(said)


def _evened(run: Run) -> bool:
    """Whether a median of single steps is another number than the one that is compared."""
    from workbench.run.facts import paced_blocks, steady_blocks

    if run.record is None or run.record.timings is None:
        return False
    paced = [ns for block in paced_blocks(run.record) for ns in block]
    single = [ns for block in steady_blocks(run.record.timings) for ns in block]
    if not paced or not single:
        return False
    median = statistics.median(single)
    return abs(statistics.median(paced) - median) > APART * median
