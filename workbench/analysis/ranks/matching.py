"""Which calls on different ranks are the same collective: by process group and sequence.

Captures begin at different moments but end together, so calls are counted from the end backwards,
or by the sequence number where every call tells it. A capture that stopped a few calls early shows
by what it runs, and by when: the right partners end together, the wrong ones do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.collective_records import Call
from workbench.analysis.collectives import Collectives
from workbench.analysis.ranks.part import RankPart

LARGEST_SHIFT = 8
"""How many calls one capture may have ended before another."""
LARGEST_DISAGREEMENT = 0.05
"""Share of paired calls that may differ in kind or size before a rank counts as unmatched."""
CLEARLY = 0.25
"""Another shift is taken when its partners end this many times closer together."""
LEAST_PAIRS = 8
CLEARLY_OF_FEW = 0.05
"""As above, of fewer pairs, whose ends may lie close together by chance."""

_ALONE = frozenset({"send", "recv"})

Members = dict[int, int]
"""Position of the rank -> its call."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Matched:
    """Collectives that at least two of the ranks recorded."""

    members: tuple[Members, ...]
    unmatched: tuple[int, ...]
    """Positions of ranks with collectives that fit nobody's."""
    pairs: tuple[Members, ...] = ()
    """A send and the receive at its other end. Stages of a pipeline wait for each other by design,
    so these tell no straggler."""
    again: tuple[int, ...] = ()
    """Positions of files whose rank an earlier file is already: they are compared with nobody."""


def match(parts: Sequence[RankPart]) -> Matched:
    """Pair the calls of all ranks, of each its first file."""
    again = _again(parts)
    groups: dict[tuple[str, str], dict[int, NDArray[np.int64]]] = {}
    for position, part in enumerate(parts):
        if part.collectives is not None and position not in again:
            for key, calls in _by_group(part.collectives).items():
                groups.setdefault(key, {})[position] = calls
    members: list[Members] = []
    lost: set[int] = set()
    for by_rank in groups.values():
        if len(by_rank) > 1:
            found, unmatched = _match_group(parts, by_rank)
            members += found
            lost |= unmatched
    fitting = {position for each in members for position in each}
    return Matched(
        members=tuple(members),
        unmatched=tuple(sorted(lost - fitting)),
        pairs=tuple(_pairs(parts, again)),
        again=tuple(again),
    )


def _pairs(parts: Sequence[RankPart], again: Sequence[int]) -> Iterator[Members]:
    """Each send with its receive, where two ranks leave no doubt who is at the other end.

    Between two ranks messages of one group arrive in the order in which they were sent; they are
    counted from the end backwards. A trace does not tell the other end, so of more ranks nobody
    knows it.
    """
    here = [p for p, part in enumerate(parts) if part.collectives is not None and p not in again]
    if len(here) != 2 or len(parts) - len(again) != 2:
        return
    for sender, receiver in (here, here[::-1]):
        sent, got = _alone(parts[sender], "send"), _alone(parts[receiver], "recv")
        for group in sent.keys() & got.keys():
            ends = list(zip(reversed(sent[group]), reversed(got[group]), strict=False))
            wrong = sum(
                _call(parts[sender], a).bytes != _call(parts[receiver], b).bytes for a, b in ends
            )
            if wrong <= LARGEST_DISAGREEMENT * len(ends):
                yield from ({sender: a, receiver: b} for a, b in ends)


def _alone(part: RankPart, kind: str) -> dict[str, list[int]]:
    """Calls of this kind in order, by process group."""
    assert part.collectives is not None
    found: dict[str, list[int]] = {}
    for index, call in enumerate(part.collectives.calls):
        if call.kind == kind:
            found.setdefault(call.group, []).append(index)
    return found


def _again(parts: Sequence[RankPart]) -> list[int]:
    ranks = [part.rank for part in parts]
    return [at for at, rank in enumerate(ranks) if rank is not None and rank in ranks[:at]]


def _by_group(found: Collectives) -> dict[tuple[str, str], NDArray[np.int64]]:
    """Calls in order, by process group; where none is told, by the communicator's stream."""
    unnamed = sorted({c.stream for c in found.calls if not c.group and c.kind not in _ALONE})
    groups: dict[tuple[str, str], list[int]] = {}
    for index, call in enumerate(found.calls):
        if call.kind not in _ALONE:
            key = (call.group, call.ranks)
            if not call.group:
                key = ("", f"stream {unnamed.index(call.stream)}")
            groups.setdefault(key, []).append(index)
    return {key: np.array(calls, np.int64) for key, calls in groups.items()}


def _match_group(
    parts: Sequence[RankPart], by_rank: dict[int, NDArray[np.int64]]
) -> tuple[list[Members], set[int]]:
    first = max(by_rank, key=lambda position: (len(by_rank[position]), -position))
    anchor = by_rank[first]
    numbered = _numbered(parts, by_rank)
    members: list[Members] = [{first: int(call)} for call in anchor]
    lost = set()
    for position, calls in by_rank.items():
        if position == first:
            continue
        if numbered is not None:
            places = np.array([numbered[first].get(n, -1) for n in numbered[position]], np.int64)
        else:
            shift = _shift(parts[first], anchor, parts[position], calls)
            if shift is None:
                lost.add(position)
                continue
            places = len(anchor) - shift - len(calls) + np.arange(len(calls))
        for place, call in zip(places.tolist(), calls.tolist(), strict=True):
            if 0 <= place < len(anchor):
                members[place][position] = call
    return [each for each in members if len(each) > 1], lost


def _numbered(
    parts: Sequence[RankPart], by_rank: dict[int, NDArray[np.int64]]
) -> dict[int, dict[int, int]] | None:
    """Per rank, the place of every sequence number; ``None`` unless each call has its own."""
    found = {}
    for position, calls in by_rank.items():
        numbers = [_call(parts[position], call).sequence for call in calls]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers) or len(set(known)) < len(known):
            return None
        found[position] = {number: place for place, number in enumerate(known)}
    return found


def _call(part: RankPart, call: int) -> Call:
    assert part.collectives is not None
    return part.collectives.calls[call]


def _shift(
    one: RankPart, anchor: NDArray[np.int64], other: RankPart, calls: NDArray[np.int64]
) -> int | None:
    """By how many calls the other capture ended earlier (negative: later) than the first one."""
    tried = []
    for shift in sorted(range(-LARGEST_SHIFT, LARGEST_SHIFT + 1), key=abs):
        a = anchor[: len(anchor) - shift] if shift >= 0 else anchor
        b = calls if shift >= 0 else calls[:shift]
        count = min(len(a), len(b))
        if count == 0 or (shift and count < max(2, min(len(anchor), len(calls)) / 2)):
            continue  # a single pair always ends together, and most calls must have a partner
        a, b = a[len(a) - count :], b[len(b) - count :]
        wrong = sum(_differ(_call(one, i), _call(other, j)) for i, j in zip(a, b, strict=True))
        if wrong <= LARGEST_DISAGREEMENT * count:
            tried.append((shift, _spread(one, a, other, b), wrong, count))
    if not tried:
        return None
    nearest = tried[0]
    best = min(tried, key=lambda each: (each[2], each[1]))
    clearly = CLEARLY if best[3] >= LEAST_PAIRS else CLEARLY_OF_FEW
    closer = best[1] < clearly * nearest[1] or best[2] < nearest[2]
    return best[0] if closer else nearest[0]


def _differ(a: Call, b: Call) -> bool:
    sized = a.bytes is not None and b.bytes is not None and a.kind not in ("all_to_allv",)
    return a.shown_kind != b.shown_kind or (
        sized and a.split == b.split == "minimum" and a.bytes != b.bytes
    )


def _spread(one: RankPart, a: NDArray[np.int64], other: RankPart, b: NDArray[np.int64]) -> float:
    """How far the differences of the ends scatter about their median."""
    assert one.collectives is not None
    assert other.collectives is not None
    apart = one.collectives.end[a] - other.collectives.end[b]
    return float(np.median(np.abs(apart - np.median(apart))))
