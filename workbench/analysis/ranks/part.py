"""What is kept of one rank while the others are read: small beside its trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.analysis.collectives import Collectives
from workbench.analysis.ranges import Range


@dataclass(frozen=True, kw_only=True, eq=False)
class RankPart:
    """The small results of one rank that a comparison with the others needs."""

    rank: int | None
    collectives: Collectives | None
    base_ns: int | None
    """Unix time of the trace's zero; ``None`` when the file does not tell it."""
    windows: Mapping[int, Range | None]
    """Per device, and under ``HOST`` for a trace without one."""
    steps: int | None
    step_ns: float | None
    """Median step time."""
    phases: Mapping[str, int | None]
    """Breakdown of the window of the first device (or of the host), communication left out."""
