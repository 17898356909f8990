"""What each piece of the wait was spent on, in whole nanoseconds that sum to it."""

from __future__ import annotations

import numpy as np

from workbench.analysis.intervals import Spans, contains, covered_until, intersect, total, union
from workbench.analysis.stalls.batches import MISSING, Batches
from workbench.analysis.stalls.chain import Chain, Link
from workbench.analysis.stalls.fetch import FetchShares, Values
from workbench.analysis.stalls.parts import PART, PARTS, Times

_WHOLE = {
    Link.NOWHERE: "other",
    Link.START: "startup",
    Link.HANDED: "other",
    Link.UNSEEN: "other",
    Link.PIN: "pin",
}
"""Links that are one part as they are."""


def allotted(
    pieces: Chain, got: Batches, batches: Batches, shares: FetchShares, copying: Spans
) -> Times:
    """A row a piece, a column a part; rows sum to the lengths of the pieces."""
    amounts = np.zeros((len(pieces.start), len(PARTS)), np.int64)
    length = pieces.end - pieces.start
    for link, part in _WHOLE.items():
        mine = pieces.link == link
        amounts[mine, PART[part]] = length[mine]
    row = got.row[pieces.batch]
    for link, table, parts in (
        (Link.SAMPLES, shares.samples, ("storage", "decode", "oversubscription", "other")),
        (Link.COLLATE, shares.collate, ("collate", "oversubscription")),
    ):
        mine = np.flatnonzero(pieces.link == link)
        columns = np.array([PART[name] for name in parts])
        amounts[mine[:, None], columns] = _rounded(length[mine], table[row[mine]])
    copied = np.flatnonzero(pieces.link == Link.AFTER)
    which = np.where(contains(copying, pieces.start[copied]), PART["copy"], PART["other"])
    amounts[copied, which] = length[copied]
    for link, part, beside, spans in (
        (Link.QUEUED, "other", "starvation", _busy_spans(batches)),
        (Link.TRANSFER, "transfer", "pin", _pin_spans(batches)),
    ):
        mine = np.flatnonzero(pieces.link == link)
        key = _key(got, link)[pieces.batch[mine]]
        inside = _inside(pieces.start[mine], pieces.end[mine], key, spans)
        amounts[mine, PART[beside]] = inside
        amounts[mine, PART[part]] = length[mine] - inside
    return amounts


def _key(batches: Batches, link: Link) -> Times:
    """Who serves one batch after the other: a worker, or the pinning thread of a loader."""
    if link is Link.TRANSFER:
        return batches.stream << 32
    worker = np.where(batches.worker == MISSING, -1, batches.worker)
    return (batches.stream << 32) + worker + 1


def _busy_spans(batches: Batches) -> dict[int, Spans]:
    """Per worker process, when it fetched any batch."""
    seen = batches.fetch_end != MISSING
    key = np.where(seen & (batches.worker != MISSING), _key(batches, Link.QUEUED), -1)
    return _by_key(key, batches.fetch_start, batches.fetch_end)


def _pin_spans(batches: Batches) -> dict[int, Spans]:
    """Per loader, when its pinning thread pinned any batch."""
    pinned = (batches.pin_start != MISSING) & (batches.worker != MISSING)
    key = np.where(pinned, _key(batches, Link.TRANSFER), -1)
    return _by_key(key, batches.pin_start, batches.pinned)


def _by_key(key: Times, start: Times, end: Times) -> dict[int, Spans]:
    return {int(one): union(start[key == one], end[key == one]) for one in np.unique(key[key >= 0])}


def _inside(start: Times, end: Times, key: Times, spans: dict[int, Spans]) -> Times:
    """Of each stretch, how much lies in the spans of its key."""
    found = np.zeros(len(start), np.int64)
    for one in np.unique(key):
        mine = key == one
        known = spans.get(int(one))
        if known is not None:
            found[mine] = covered_until(known, end[mine]) - covered_until(known, start[mine])
    return found


def _rounded(length: Times, shares: Values) -> Times:
    """Whole nanoseconds by share, that sum to each length."""
    ends = np.rint(length[:, None] * np.minimum(np.cumsum(shares, axis=1), 1.0)).astype(np.int64)
    ends[:, -1] = length
    parts: Times = np.diff(ends, axis=1, prepend=0)
    return parts


def fetching(batches: Batches, served: Spans) -> float | None:
    """How many workers fetched at once, on average over these stretches."""
    busy, span = _busy_spans(batches), total(served)
    if not busy or not span:
        return None
    return sum(total(intersect(spans, served)) for spans in busy.values()) / span
