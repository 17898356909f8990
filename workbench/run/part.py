"""What a rank gives to be compared with the other ranks of its job: small, without its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.analysis.ranks.part import RankPart
    from workbench.run.rank import RankAnalysis


def part_of(rank: RankAnalysis) -> RankPart:
    """Its collectives, windows, steps and phases."""
    import numpy as np

    from workbench.analysis.ranks.part import RankPart

    steps = rank.steps
    times = np.empty(0) if steps is None else steps.time_ns[steps.warmup :]
    window = None if rank.window is None else float(rank.window.length)
    counted = len(steps) if steps is not None and len(steps) else None
    spread = None if window is None else window / (counted or 1)
    return RankPart(
        rank=rank.rank,
        collectives=rank.collectives,
        base_ns=rank.trace.base_ns,
        windows=rank.collective_windows,
        steps=counted,
        step_ns=float(np.median(times)) if len(times) else spread,
        phases=_phases(rank),
    )


def _phases(rank: RankAnalysis) -> dict[str, int | None]:
    """The breakdown without communication, of the first device or of the host."""
    if not rank.device_time:
        parts = dict(rank.host_breakdown or {})
        parts.pop("communication", None)
        return parts
    device = next(iter(rank.device_time))
    time = rank.device_time[device]
    return {
        "compute": time.compute,
        "exposed_memory": time.exposed_memory,
        **rank.idle_causes[device],
    }
