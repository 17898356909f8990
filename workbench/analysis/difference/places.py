"""Which kernels stand at the same place of a step on both sides, by what runs before and after."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

LONGEST_STEP = 4000
"""Pieces of work in a step: aligning takes the square of it in time and memory (32 MB)."""

Codes = NDArray[np.int64]


def same_places(
    a: Codes, b: Codes, group_a: Sequence[str], group_b: Sequence[str]
) -> Counter[tuple[int, int]]:
    """How often a row of one side stands where a row of the other does.

    The work that both sides share anchors the step. Between two anchors the pieces are matched in
    order, but only where as many stand there on both sides, of the same groups: with one more or
    one less nobody can tell which is which.

    Args:
        a: Rows of the first side in order of time, those that both sides have numbered from 0 up
            and the others from -1 down.
        b: The same for the second side; shared rows have the same number.
        group_a: Group of each piece of ``a``.
        group_b: Group of each piece of ``b``.
    """
    found: Counter[tuple[int, int]] = Counter()
    if max(len(a), len(b)) > LONGEST_STEP or not len(a) or not len(b):
        return found
    anchors = [(-1, -1), *_common(a, b), (len(a), len(b))]
    for (left_a, left_b), (right_a, right_b) in pairwise(anchors):
        here_a, here_b = slice(left_a + 1, right_a), slice(left_b + 1, right_b)
        if list(group_a[here_a]) == list(group_b[here_b]):
            pairs = zip(a[here_a].tolist(), b[here_b].tolist(), strict=True)
            found.update(pair for pair in pairs if max(pair) < 0)
    return found


def _common(a: Codes, b: Codes) -> list[tuple[int, int]]:
    """Places of a longest common subsequence of the shared rows, in order."""
    at_a, at_b = np.flatnonzero(a >= 0), np.flatnonzero(b >= 0)
    own, other = a[at_a], b[at_b]
    best = np.zeros((len(own) + 1, len(other) + 1), np.int16)
    for i, code in enumerate(own):
        longer = np.where(other == code, best[i, :-1] + 1, best[i, 1:])
        np.maximum.accumulate(longer, out=best[i + 1, 1:])
    pairs = []
    i, j = len(own), len(other)
    while i and j:
        if best[i, j] == best[i - 1, j]:
            i -= 1
        elif best[i, j] == best[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((int(at_a[i]), int(at_b[j])))
    return pairs[::-1]
