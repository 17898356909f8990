"""Steps of record without the few that wait far longer than all others.

A mean is what the loop takes as a whole, but one restart of an epoch among forty steps can be most
of it, and then says nothing about the other thirty-nine.
"""

from dataclasses import dataclass, replace

import numpy as np

from workbench.findings.finding import Facts

FEW_SHARE = 0.05
"""Own choice: at most so many of the steps are few."""
LEAST_STEPS = 10
"""Own choice: of fewer steps none is told from the others."""
DRIVEN = 0.5
"""Own choice: few steps with at least so much of all waiting are what makes its mean."""

ALIKE = 0.5
"""Own choice: waits at least so long as these are of their kind."""


@dataclass(frozen=True, kw_only=True)
class Few:
    """The steps that were left out."""

    steps: int
    of: int
    wait_ns: float
    """How long each of them waits, on average."""


def usual(facts: Facts) -> tuple[Facts, Few | None]:
    """The facts with the usual steps only, and the few left out; ``None`` where none stand out.

    Where each of n workers brings a batch at the same time, every n-th step waits: that is usual.
    """
    steps, waits = facts.step_ns, facts.input_ns
    if not steps or not waits or len(steps) != len(waits) or len(steps) < LEAST_STEPS:
        return facts, None
    waited = np.asarray(waits, np.float64)
    longest = np.sort(waited)[::-1]
    summed = np.cumsum(longest)
    if summed[-1] <= 0:
        return facts, None
    least = longest[np.searchsorted(summed, DRIVEN * summed[-1])] * ALIKE
    count = int((waited >= least).sum())
    workers = facts.effective.get("workers") or 1
    if count > max(1.0, FEW_SHARE * len(steps)) or 2 * count * workers >= len(steps):
        return facts, None
    kept = np.flatnonzero(waited < least).tolist()
    few = Few(steps=count, of=len(steps), wait_ns=float(summed[count - 1]) / count)
    step_ns, input_ns = (tuple(each[index] for index in kept) for each in (steps, waits))
    return replace(facts, step_ns=step_ns, input_ns=input_ns), few
