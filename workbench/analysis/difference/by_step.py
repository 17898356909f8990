"""What ran on one side of a comparison: calls and time by name, a column a step."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.steps import Steps

Counts = NDArray[np.int64]

MICROSECOND = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class ByStep:
    """Rows are names, columns the steps that count; one column where no step is marked."""

    names: tuple[str, ...]
    groups: tuple[str, ...]
    """What a renamed row must share: the family of a kernel; empty for operators."""
    calls: Counts
    ns: Counts
    median_ns: NDArray[np.float64]
    """Of one call; NaN where it does not apply."""
    order: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    """Rows of what ran in one typical step, in order of time; empty where nobody asks."""
    rounding_ns: int = 1
    """Unit in which the durations were written: whole microseconds before torch 2.3."""

    @property
    def steps(self) -> int:
        """How many steps the columns are."""
        return int(self.ns.shape[1])

    def summed(self) -> "ByStep":
        """The same with all steps as one column."""
        return replace(
            self,
            calls=self.calls.sum(axis=1, keepdims=True),
            ns=self.ns.sum(axis=1, keepdims=True),
        )

    def grouped(self) -> "ByStep":
        """The same summed by group, such as kernels by family."""
        names = tuple(dict.fromkeys(self.groups))
        at = {name: row for row, name in enumerate(names)}
        index = np.array([at[group] for group in self.groups], np.int64)
        calls, ns = (np.zeros((len(names), self.steps), np.int64) for _ in "cn")
        np.add.at(calls, index, self.calls)
        np.add.at(ns, index, self.ns)
        return ByStep(
            names=names,
            groups=names,
            calls=calls,
            ns=ns,
            median_ns=np.full(len(names), np.nan),
            rounding_ns=self.rounding_ns,
        )


def counted_steps(steps: Steps | None) -> NDArray[np.int64]:
    """Places of the complete steps that count: warm-up is left out, unless nothing else is left."""
    if steps is None or not len(steps):
        return np.empty(0, np.int64)
    first = steps.first_steady if steps.warmup else 0
    return np.arange(first if first < len(steps) else 0, len(steps))


def tabulate(
    names: Sequence[str],
    groups: Sequence[str],
    *,
    row: Counts,
    step: Counts,
    ns: Counts,
    steps: int,
    calls: Counts | None = None,
    order: Counts | None = None,
) -> ByStep:
    """Sum pieces by name and step.

    Args:
        names: What the rows are called.
        groups: Of each row.
        row: Of each piece, its row.
        step: Of each piece, its column.
        ns: Of each piece, its time.
        steps: How many columns there are.
        calls: Of each piece, how many calls it is; one when not given.
        order: Rows of what ran in one step, in order of time.
    """
    counts, sums = (np.zeros((len(names), steps), np.int64) for _ in "cn")
    np.add.at(counts, (row, step), 1 if calls is None else calls)
    np.add.at(sums, (row, step), ns)
    return ByStep(
        names=tuple(names),
        groups=tuple(groups),
        calls=counts,
        ns=sums,
        median_ns=_medians(row, ns, len(names)),
        order=np.empty(0, np.int64) if order is None else order,
        rounding_ns=MICROSECOND if len(ns) and not (ns % MICROSECOND).any() else 1,
    )


def typical_step(step: Counts, steps: int) -> int:
    """The last of the steps that have as many pieces as the median step."""
    pieces = np.bincount(step, minlength=steps)
    distance = np.abs(pieces - np.median(pieces))
    return int(np.flatnonzero(distance == distance.min())[-1])


def _medians(row: Counts, ns: Counts, rows: int) -> NDArray[np.float64]:
    found = np.full(rows, np.nan)
    order = np.lexsort((ns, row))
    row, ns = row[order], ns[order]
    first = np.flatnonzero(np.diff(row, prepend=-1))
    count = np.diff(np.append(first, len(row)))
    if len(first):
        found[row[first]] = (ns[first + (count - 1) // 2] + ns[first + count // 2]) / 2
    return found
