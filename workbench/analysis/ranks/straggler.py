"""Which rank the others wait for: the one that itself waits least, and the phase it is late in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.intervals import Spans, subtract, total, union
from workbench.analysis.ranks.matching import Matched
from workbench.analysis.ranks.part import RankPart

LEAST_DEFICIT = 0.05
"""Share of the step time by which a straggler waits less than the median rank."""

PHASES: Mapping[str, tuple[str, ...]] = {
    "host": ("host_operators", "host_python", "host_other", "launch"),
    "copies": ("exposed_memory",),
}
"""Parts of the breakdown that are one phase together; every other part is a phase of its own."""


@dataclass(frozen=True, kw_only=True)
class Waits:
    """How long each rank waited for others in the collectives that all windows hold."""

    wait_ns: tuple[int | None, ...]
    """By position; ``None`` for a rank that matched nobody."""
    transfer_ns: tuple[int | None, ...]
    """The rest of the same collectives: moving data."""
    steps: int | None
    """Steps in the windows; ``None`` without marked steps."""
    step_ns: float | None
    """Median step time; the window's length without marked steps."""


@dataclass(frozen=True, kw_only=True)
class Straggler:
    """A rank that the others wait for."""

    position: int
    rank: int | None
    wait_deficit_ns_per_step: float
    share_of_step: float
    phase: str | None
    """Where it spends more than the others: input, host, compute, …; ``None`` if nowhere."""
    excess_ns_per_step: float | None
    """How much more."""
    others_wait_ns_per_step: float
    """How much longer the median of the others waits: of two ranks twice the deficit."""


def waits(
    parts: Sequence[RankPart], matched: Matched, transfers: Sequence[NDArray[np.int64]]
) -> Waits:
    """What every rank waits in the collectives that lie in the windows of all their ranks.

    Several that wait at once, as buckets of gradients do, wait for the same late rank: each instant
    counts once.
    """
    waiting: dict[int, list[tuple[int, int]]] = {}
    moving: dict[int, list[tuple[int, int]]] = {}
    for members in matched.members:
        if all(_inside(parts[p], call) and transfers[p][call] >= 0 for p, call in members.items()):
            for position, call in members.items():
                found = parts[position].collectives
                assert found is not None
                start, end = int(found.start[call]), int(found.end[call])
                split = max(end - int(transfers[position][call]), start)
                waiting.setdefault(position, []).append((start, split))
                moving.setdefault(position, []).append((split, end))
    summed, moved = {}, {}
    for position, spans in waiting.items():
        waited, rest = _spans(spans), _spans(moving[position])
        summed[position] = total(waited)
        moved[position] = total(subtract(rest, waited))
    own = [part for position, part in enumerate(parts) if position not in matched.again]
    counts = [part.steps for part in own if part.steps]
    times = [part.step_ns for part in own if part.step_ns]
    return Waits(
        wait_ns=tuple(summed.get(position) for position in range(len(parts))),
        transfer_ns=tuple(moved.get(position) for position in range(len(parts))),
        steps=min(counts) if len(counts) == len(own) else None,
        step_ns=median(times) if times else None,
    )


def straggler(parts: Sequence[RankPart], waited: Waits) -> Straggler | None:
    """The rank whose summed wait is smallest, if clearly below the median; ``None`` without."""
    known = {p: ns for p, ns in enumerate(waited.wait_ns) if ns is not None}
    if len(known) < 2 or not waited.step_ns:
        return None
    position = min(known, key=lambda p: (known[p], p))
    steps = waited.steps or 1
    others = [ns for each, ns in known.items() if each != position]
    deficit = (median(known.values()) - known[position]) / steps
    share = deficit / waited.step_ns
    if share <= LEAST_DEFICIT:
        return None
    phase, excess = _late_phase(parts[position], [parts[p] for p in known if p != position])
    return Straggler(
        position=position,
        rank=parts[position].rank,
        wait_deficit_ns_per_step=deficit,
        share_of_step=share,
        phase=phase,
        excess_ns_per_step=excess,
        others_wait_ns_per_step=(median(others) - known[position]) / steps,
    )


def phases_per_step(part: RankPart) -> dict[str, float]:
    """Nanoseconds a step of every phase that was measured."""
    steps = part.steps or 1
    owner = {name: phase for phase, names in PHASES.items() for name in names}
    found: dict[str, float] = {}
    for name, ns in part.phases.items():
        if ns is not None:
            phase = owner.get(name, name)
            found[phase] = found.get(phase, 0.0) + ns / steps
    return found


def _spans(pairs: Sequence[tuple[int, int]]) -> Spans:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return union(both[:, 0], both[:, 1])


def _inside(part: RankPart, call: int) -> bool:
    found = part.collectives
    assert found is not None
    window = part.windows.get(int(found.device[call]))
    return (
        window is not None and found.start[call] >= window.start and found.end[call] <= window.end
    )


def _late_phase(late: RankPart, others: Sequence[RankPart]) -> tuple[str | None, float | None]:
    phases = [phases_per_step(part) for part in others]
    excess = {
        phase: ns - median(each.get(phase, 0.0) for each in phases)
        for phase, ns in phases_per_step(late).items()
    }
    phase = max(excess, key=lambda each: excess[each], default=None)
    if phase is None or excess[phase] <= 0:
        return None, None
    return phase, excess[phase]
