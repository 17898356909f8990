"""Compilations of a loop: the warm-up before its steps are steady, and those inside later steps."""

from dataclasses import dataclass

import numpy as np

from workbench.analysis.compiling import compiling_spans, leading_compilations
from workbench.analysis.intervals import clip, total
from workbench.analysis.steps import Steps
from workbench.trace.table import Trace


@dataclass(frozen=True, kw_only=True)
class Compilations:
    """torch.compile and Triton at work."""

    steps: int
    """Steps looked at: all complete ones but the first."""
    steps_with: int
    """Of these, the ones in which something was compiled."""
    count: int
    ns: int
    """Host time in them."""
    warmup_ns: int = 0
    """Host time of compilations before the first step that counts."""
    warmup_steps: tuple[int, ...] = ()
    """Host times of the first complete steps that compile: none of them counts."""


def compilations(trace: Trace, steps: Steps | None) -> Compilations | None:
    """Compilations in and before the complete steps; ``None`` with fewer than two steps."""
    if steps is None or len(steps) < 2:
        return None
    spans = compiling_spans(trace)
    index = steps.step_of(spans.start)
    late = index >= 1
    leading = leading_compilations(spans, steps.start, steps.end)
    steady = int(steps.start[min(max(leading, steps.first_steady), len(steps) - 1)])
    return Compilations(
        steps=len(steps) - 1,
        steps_with=len(np.unique(index[late])),
        count=int(late.sum()),
        ns=int((spans.end - spans.start)[late].sum()),
        warmup_ns=total(clip(spans, steps.since or 0, steady)),
        warmup_steps=tuple(int(ns) for ns in steps.host_ns[:leading]),
    )
