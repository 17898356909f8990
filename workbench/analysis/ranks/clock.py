"""One clock for all ranks: each trace's base time, corrected by collectives that end together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.ranks.matching import Matched
from workbench.analysis.ranks.part import RankPart
from workbench.trace.table import Violation

LARGEST_RESIDUAL_NS = 1_000_000
"""Beyond it times of different ranks are not compared (as for host and device)."""
_NOT_COMPARED = (
    "instants of different ranks are not compared. Waiting for ranks follows from durations alone, "
    "and holds."
)
SKEW_SHOWN_NS = 1_000_000_000
"""Base times of one job that differ by more than a second are clocks that nobody set."""

_TOGETHER = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})


@dataclass(frozen=True, kw_only=True, eq=False)
class Clock:
    """What to add to each rank's times; ``None`` for a rank that nothing ties to the others."""

    add_ns: tuple[int | None, ...]
    """From a trace's own zero (on its host's clock) to the common clock."""
    correction_ns: tuple[int | None, ...]
    """The part of it that is no base time: how far the rank's clock was off."""
    residual_ns: int | None
    """95 % of matched ends lie closer together than this, after correction."""
    again: tuple[int, ...] = ()
    """Positions that stand for no rank of their own, and so need no clock."""

    @property
    def loose(self) -> tuple[int, ...]:
        """Positions of ranks whose times cannot be put beside the others'."""
        untied = (p for p, add in enumerate(self.add_ns) if add is None)
        return tuple(p for p in untied if p not in self.again)

    @property
    def aligned(self) -> bool:
        """Whether times of all ranks can be compared."""
        return (
            not self.loose
            and self.residual_ns is not None
            and self.residual_ns <= LARGEST_RESIDUAL_NS
        )


def common_clock(parts: Sequence[RankPart], matched: Matched) -> Clock:
    """Put all ranks on the clock of the first one that shares a collective."""
    apart = _differences(parts, matched) or _by_messages(parts, matched)
    start = min((pair[0] for pair in apart), default=0)
    base = [part.base_ns or 0 for part in parts]
    known: dict[int, int] = {start: 0} if apart else {}
    waiting = list(known)
    while waiting:
        one = waiting.pop(0)
        for a, b in apart:
            if a == one and b not in known:
                known[b] = known[one] + int(np.median(apart[a, b]))
                waiting.append(b)
    rest = [
        np.abs(differences + known[a] - known[b])
        for (a, b), differences in apart.items()
        if a < b and a in known and b in known
    ]
    residual = int(np.percentile(np.concatenate(rest), 95)) if rest else None
    positions = range(len(parts))
    return Clock(
        add_ns=tuple(known[p] + base[p] - base[start] if p in known else None for p in positions),
        correction_ns=tuple(known.get(p) for p in positions),
        residual_ns=residual,
        again=matched.again,
    )


def clock_violations(parts: Sequence[RankPart], clock: Clock) -> tuple[Violation, ...]:
    """What stands against comparing times of different ranks."""
    loose = [_name(parts[position], position) for position in clock.loose]
    if loose:
        return (
            Violation(
                code="clock_bases",
                message=(
                    f"No collective ties the clock of rank {_listed(loose)} to the others: "
                    f"{_NOT_COMPARED} Record the same steps on all ranks."
                ),
                count=len(loose),
                voids=("rank_times",),
            ),
        )
    if clock.residual_ns is not None and clock.residual_ns > LARGEST_RESIDUAL_NS:
        return (
            Violation(
                code="clock_bases",
                message=(
                    "Matched collectives end up to "
                    f"{clock.residual_ns / 1e6:.1f} ms apart after the clocks were corrected: "
                    f"{_NOT_COMPARED} On a busy machine a rank may go on late: record where "
                    "nothing else runs, and the same steps on all ranks."
                ),
                voids=("rank_times",),
            ),
        )
    off = [
        (_name(part, i), correction)
        for i, part in enumerate(parts)
        if part.base_ns is not None
        and (correction := clock.correction_ns[i]) is not None
        and abs(correction) > SKEW_SHOWN_NS
    ]
    if not off:
        return ()
    shown = ", ".join(f"rank {name} by {ns / 1e9:.2f} s" for name, ns in off)
    return (
        Violation(
            code="clock_bases",
            message=(
                f"Unaligned clocks: {shown}. Matched collectives correct them to within "
                f"{(clock.residual_ns or 0) / 1e3:.1f} us; times from outside the traces do not "
                "fit. Synchronise the clocks of the machines."
            ),
            count=len(off),
        ),
    )


def _differences(
    parts: Sequence[RankPart], matched: Matched
) -> dict[tuple[int, int], NDArray[np.int64]]:
    """For pairs of ranks, how much later each matched end shows on the first one's clock.

    An uneven all-to-all ends at different times on its ranks: it counts only where two ranks have
    nothing better in common.
    """
    sure: dict[tuple[int, int], list[int]] = {}
    rough: dict[tuple[int, int], list[int]] = {}
    for members in matched.members:
        ends, found = {}, sure
        for position, call in members.items():
            collectives = parts[position].collectives
            assert collectives is not None
            told = collectives.calls[call]
            if told.kind in _TOGETHER:
                clock = int(collectives.end[call] + collectives.clock[call])
                ends[position] = clock + (parts[position].base_ns or 0)
            if told.split != "minimum":
                found = rough
        first = min(ends, default=None)
        for other, end in ends.items():
            if first is not None and other != first:
                found.setdefault((first, other), []).append(ends[first] - end)
                found.setdefault((other, first), []).append(end - ends[first])
    return {pair: np.array(values, np.int64) for pair, values in (rough | sure).items()}


def _name(part: RankPart, position: int) -> str:
    return str(position if part.rank is None else part.rank)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _by_messages(
    parts: Sequence[RankPart], matched: Matched
) -> dict[tuple[int, int], NDArray[np.int64]]:
    """The same of two ranks that only send to each other: the least and the most that it can be.

    Nothing arrives before it was sent. Messages both ways leave an interval (as NTP does); half of
    its length is the most by which its middle is wrong.
    """
    least: dict[tuple[int, int], int] = {}
    for pair in matched.pairs:
        sender, receiver = pair  # in this order
        sent, got = (parts[position].collectives for position in (sender, receiver))
        assert sent is not None
        assert got is not None
        begun = int(sent.start[pair[sender]] + sent.clock[pair[sender]])
        there = int(got.end[pair[receiver]] + got.clock[pair[receiver]])
        begun, there = begun + (parts[sender].base_ns or 0), there + (parts[receiver].base_ns or 0)
        key = (sender, receiver)
        least[key] = max(least.get(key, begun - there), begun - there)
    for (a, b), low in least.items():
        high = -least[b, a] if (b, a) in least else None
        if a < b and high is not None and low <= high:
            both = np.array([low, high], np.int64)
            return {(a, b): both, (b, a): -both}
    return {}
