"""Who serves batches one after the other: worker processes, and the pinning thread of a loader."""

from __future__ import annotations

import numpy as np

from workbench.analysis.intervals import Spans, covered_until, intersect, total, union
from workbench.analysis.stalls.batches import MISSING, Batches
from workbench.analysis.stalls.parts import Times


def worker_key(batches: Batches) -> Times:
    """Who fetches one batch after the other."""
    worker = np.where(batches.worker == MISSING, -1, batches.worker)
    found: Times = (batches.stream << 32) + worker + 1
    return found


def busy_spans(batches: Batches) -> dict[int, Spans]:
    """Per worker process, when it fetched any batch."""
    seen = batches.fetch_end != MISSING
    key = np.where(seen & (batches.worker != MISSING), worker_key(batches), -1)
    return _by_key(key, batches.fetch_start, batches.fetch_end)


def pin_spans(batches: Batches) -> dict[int, Spans]:
    """Per loader, when its pinning thread pinned any batch."""
    pinned = (batches.pin_start != MISSING) & (batches.worker != MISSING)
    key = np.where(pinned, batches.stream << 32, -1)
    return _by_key(key, batches.pin_start, batches.pinned)


def _by_key(key: Times, start: Times, end: Times) -> dict[int, Spans]:
    return {int(one): union(start[key == one], end[key == one]) for one in np.unique(key[key >= 0])}


def inside_of(start: Times, end: Times, key: Times, spans: dict[int, Spans]) -> Times:
    """Of each stretch, how much lies in the spans of its key."""
    found = np.zeros(len(start), np.int64)
    for one in np.unique(key):
        mine = key == one
        known = spans.get(int(one))
        if known is not None:
            found[mine] = covered_until(known, end[mine]) - covered_until(known, start[mine])
    return found


def fetching(batches: Batches, served: Spans) -> float | None:
    """How many workers fetched at once, on average over these stretches."""
    busy, span = busy_spans(batches), total(served)
    if not busy or not span:
        return None
    return sum(total(intersect(spans, served)) for spans in busy.values()) / span
