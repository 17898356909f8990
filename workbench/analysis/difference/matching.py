"""Which names of two sides are the same kernel or operator, and why.

A match is made only where one reason singles it out; what could be two things stays removed on
one side and added on the other.
"""

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np

from workbench.analysis.difference.by_step import ByStep
from workbench.analysis.difference.kernel_names import numbered, words
from workbench.analysis.difference.places import same_places

SAME_NAME = "same name"
OTHER_ARGUMENTS = "renamed: same words, other arguments"
SAME_PLACE = "renamed: same place in the step"
OTHER_NUMBER = "renamed: same but for a number"

CALLS_DIFFER = 0.1
"""Calls per step of a renamed kernel may differ by this share."""
LEAST_PLACES = 0.9
"""Share of all its calls that must stand at the places of the other name."""


class Pair(NamedTuple):
    """Rows of the two sides; -1 where a side has none."""

    first: int
    second: int
    reason: str


def match_kernels(a: ByStep, b: ByStep, *, renamed: bool = True) -> list[Pair]:
    """Pair the kernels of two sides by name, then by words, then by place in the step.

    Args:
        a: The first side.
        b: The second side.
        renamed: Whether to look for renamed kernels at all: not between vendors, whose libraries
            share neither names nor algorithms.
    """
    pairs = _same_names(a, b)
    if renamed:
        pairs += _unique(a, b, pairs, _by_words, OTHER_ARGUMENTS)
        pairs += _by_place(a, b, pairs)
    return _with_rest(a, b, pairs)


def match_operators(a: ByStep, b: ByStep) -> list[Pair]:
    """Pair operators by name; those of a compiler also where only a number or hash differs."""
    pairs = _same_names(a, b)
    pairs += _unique(a, b, pairs, lambda side, row: numbered(side.names[row]), OTHER_NUMBER)
    return _with_rest(a, b, pairs)


def match_names(a: ByStep, b: ByStep) -> list[Pair]:
    """Pair rows by name and nothing else: families, categories."""
    return _with_rest(a, b, _same_names(a, b))


def _same_names(a: ByStep, b: ByStep) -> list[Pair]:
    at = {name: row for row, name in enumerate(b.names)}
    return [Pair(row, at[name], SAME_NAME) for row, name in enumerate(a.names) if name in at]


def _with_rest(a: ByStep, b: ByStep, pairs: list[Pair]) -> list[Pair]:
    first, second = _free(a, b, pairs)
    removed = [Pair(row, -1, "only in the first") for row in first]
    return pairs + removed + [Pair(-1, row, "only in the second") for row in second]


def _free(a: ByStep, b: ByStep, pairs: list[Pair]) -> tuple[list[int], list[int]]:
    used_a, used_b = {p.first for p in pairs}, {p.second for p in pairs}
    return (
        [row for row in range(len(a.names)) if row not in used_a],
        [row for row in range(len(b.names)) if row not in used_b],
    )


def _by_words(side: ByStep, row: int) -> Hashable:
    found = words(side.names[row])
    return (side.groups[row], found) if found else None


def _unique(
    a: ByStep,
    b: ByStep,
    pairs: list[Pair],
    key: Callable[[ByStep, int], Hashable],
    reason: str,
) -> list[Pair]:
    """Rows that share a key with exactly one row of the other side, called as often."""
    first, second = _free(a, b, pairs)
    held_a: dict[Hashable, list[int]] = {}
    held_b: dict[Hashable, list[int]] = {}
    for side, rows, held in ((a, first, held_a), (b, second, held_b)):
        for row in rows:
            held.setdefault(key(side, row), []).append(row)
    return [
        Pair(rows[0], held_b[shared][0], reason)
        for shared, rows in held_a.items()
        if shared is not None
        and len(rows) == 1
        and len(held_b.get(shared, ())) == 1
        and _as_often(a, rows[0], b, held_b[shared][0])
    ]


def _as_often(a: ByStep, row_a: int, b: ByStep, row_b: int) -> bool:
    one, other = float(a.calls[row_a].mean()), float(b.calls[row_b].mean())
    return abs(one - other) <= CALLS_DIFFER * max(one, other)


def _by_place(a: ByStep, b: ByStep, pairs: list[Pair]) -> list[Pair]:
    if not len(a.order) or not len(b.order):
        return []
    shared_a = np.arange(-1, -len(a.names) - 1, -1)
    shared_b = np.arange(-1, -len(b.names) - 1, -1)
    for number, pair in enumerate(pairs):
        shared_a[pair.first] = shared_b[pair.second] = number
    count_a, count_b = (np.bincount(s.order, minlength=len(s.names)) for s in (a, b))
    votes = same_places(
        shared_a[a.order],
        shared_b[b.order],
        [a.groups[row] for row in a.order],
        [b.groups[row] for row in b.order],
    )
    found = []
    for (code_a, code_b), places in votes.items():
        row_a, row_b = -1 - code_a, -1 - code_b
        calls = max(count_a[row_a], count_b[row_b])
        if places >= LEAST_PLACES * calls and _as_often(a, row_a, b, row_b):
            reason = f"{SAME_PLACE} ({places} of {calls} calls)"
            found.append(Pair(row_a, row_b, reason))
    return found
