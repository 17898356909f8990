"""The stall split: the exposed wait for input by what the batch that was waited for was in.

The wait is cut where its batch went from one stage to the next, so that the slowest link of that
very batch is told, not an average. A stretch inside a fetch is divided as the whole fetch was. The
parts sum to the exposed wait exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.intervals import EMPTY, Spans, contains, total, union
from workbench.analysis.stalls.allot import allotted
from workbench.analysis.stalls.batches import MISSING, Batches, batches_of, starts_of
from workbench.analysis.stalls.chain import Chain, Link, chain, delivered
from workbench.analysis.stalls.crowding import crowded_share
from workbench.analysis.stalls.fetch import FetchShares, fetch_shares
from workbench.analysis.stalls.parts import OTHER, PART, Rows, StallPieces, Stalls, Times, Unseen
from workbench.analysis.stalls.serving import fetching

if TYPE_CHECKING:
    from workbench.store.loader import LoaderRecords

MOST_NOWHERE = 0.5
"""Own choice: records that explain less than the other half of the wait are of another loader."""

NOT_RECORDED = "what the loader did was not recorded"
WAITS_ONLY = (
    "the inside of this loader cannot be seen, only the waits for it: its batches come from "
    "something else than torch's DataLoader"
)
OTHER_LOADER = "the recorded loader is not the one that the loop waits for"


def split_stalls(
    records: LoaderRecords,
    exposed: Spans,
    waits: Spans,
    *,
    steps: Sequence[tuple[int, int]] | Times = (),
    copying: Spans | None = EMPTY,
    crowded: Spans | None = None,
) -> Stalls | Unseen:
    """Divide the exposed wait for input, or say why it cannot be.

    Args:
        records: What the loader's probes recorded, on the host's clock of the trace.
        exposed: The exposed wait: idle time for input of a device, or the loop's waits themselves.
        waits: All waits of the loop for its input, exposed or not.
        steps: Start and end of every step; sorted, disjoint.
        copying: When the loop's thread copied to a device; ``None``: the trace cannot tell.
        crowded: When all usable processors were taken, where the kernel told no run delays.
    """
    batches = batches_of(records.batches)
    got = delivered(batches)
    if not len(got):
        return Unseen(NOT_RECORDED)
    if (got.fetch_start == MISSING).all() and (got.received == MISSING).all():
        return Unseen(WAITS_ONLY)
    starts = starts_of(records)
    links = chain(got, starts, waits)
    borders = np.asarray(steps, np.int64).reshape(-1, 2)
    pieces = _cut(exposed, links, borders, copying or EMPTY)
    length = pieces.end - pieces.start
    if length[pieces.link == Link.NOWHERE].sum() > MOST_NOWHERE * max(int(length.sum()), 1):
        return Unseen(OTHER_LOADER)
    shares = fetch_shares(records.batches, crowded_share(batches, crowded))
    amounts = allotted(pieces, got, batches, shares, copying or EMPTY)
    own = got.row[pieces.batch]
    served = np.isin(pieces.link, (Link.NOWHERE, Link.START), invert=True)
    return Stalls(
        exposed_ns=total(exposed),
        by_part=_by_part(amounts, got, shares, copies_seen=copying is not None),
        other_by=_other_by(pieces.link, amounts),
        pieces=StallPieces(
            pieces.start,
            pieces.end,
            np.where(pieces.batch >= 0, own, -1).astype(np.int32),
            _place(pieces.start, borders),
            amounts,
        ),
        workers=int(max(starts.workers.max(initial=0), 0)),
        fetching=fetching(batches, union(pieces.start[served], pieces.end[served])),
    )


def _cut(exposed: Spans, links: Chain, steps: Times, copying: Spans) -> Chain:
    """The exposed wait, cut at links, steps and copies."""
    edges = np.unique(
        np.concatenate((*exposed, links.start, links.end, steps.ravel(), *copying)).astype(np.int64)
    )
    start, end = edges[:-1], edges[1:]
    inside = np.flatnonzero(contains(exposed, start))
    start, end = start[inside], end[inside]
    at = np.searchsorted(links.start, start, "right") - 1
    found = (at >= 0) & (links.end[np.maximum(at, 0)] > start) if len(links.start) else at >= 0
    at = np.maximum(at, 0)
    if not len(links.start):
        nowhere = np.full(len(start), -1, np.int32)
        return Chain(start, end, nowhere, np.full(len(start), Link.NOWHERE, np.int32))
    return Chain(
        start,
        end,
        np.where(found, links.batch[at], -1).astype(np.int32),
        np.where(found, links.link[at], Link.NOWHERE).astype(np.int32),
    )


def _place(start: Times, steps: Times) -> Rows:
    """The step of each piece, or -1."""
    if not len(steps):
        return np.full(len(start), -1, np.int32)
    at = np.searchsorted(steps[:, 0], start, "right") - 1
    return np.where((at >= 0) & (start < steps[np.maximum(at, 0), 1]), at, -1).astype(np.int32)


def _by_part(
    amounts: Times, got: Batches, shares: FetchShares, *, copies_seen: bool
) -> dict[str, int | None]:
    """The sum of each part; ``None`` for what the records cannot show."""
    fetched = (got.fetch_start != MISSING).any()
    arrived = (got.received != MISSING).any()
    seen = {
        "storage": fetched and shares.reads_seen,
        "decode": fetched,
        "collate": fetched,
        "transfer": arrived,
        "pin": arrived,
        "copy": copies_seen,
        "starvation": fetched,
        "oversubscription": fetched and shares.delays_seen,
    }
    sums = amounts.sum(axis=0)
    return {
        name: int(sums[place]) if seen.get(name, True) else None for name, place in PART.items()
    }


_REASONS = {
    Link.SAMPLES: "blocked",
    Link.QUEUED: "queued",
    Link.HANDED: "handed",
    Link.UNSEEN: "unseen",
    Link.AFTER: "after",
    Link.NOWHERE: "nowhere",
}


def _other_by(link: Rows, amounts: Times) -> dict[str, int]:
    """What ``other`` is, by the link that its pieces lie in."""
    found = dict.fromkeys(OTHER, 0)
    for each, reason in _REASONS.items():
        found[reason] += int(amounts[link == each, PART["other"]].sum())
    return found
