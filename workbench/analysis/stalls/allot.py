"""What each piece of the wait was spent on, in whole nanoseconds that sum to it."""

from __future__ import annotations

import numpy as np

from workbench.analysis.intervals import Spans, contains
from workbench.analysis.stalls.batches import Batches
from workbench.analysis.stalls.chain import Chain, Link
from workbench.analysis.stalls.fetch import FetchShares
from workbench.analysis.stalls.handing import handing_over
from workbench.analysis.stalls.parts import PART, PARTS, Times, rounded
from workbench.analysis.stalls.serving import busy_spans, inside_of, worker_key

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
        amounts[mine[:, None], columns] = rounded(length[mine], table[row[mine]])
    copied = np.flatnonzero(pieces.link == Link.AFTER)
    which = np.where(contains(copying, pieces.start[copied]), PART["copy"], PART["other"])
    amounts[copied, which] = length[copied]
    mine = np.flatnonzero(pieces.link == Link.QUEUED)
    key = worker_key(got)[pieces.batch[mine]]
    inside = inside_of(pieces.start[mine], pieces.end[mine], key, busy_spans(batches))
    amounts[mine, PART["starvation"]] = inside
    amounts[mine, PART["other"]] = length[mine] - inside
    mine = np.flatnonzero(np.isin(pieces.link, (Link.SENDING, Link.TRANSFER, Link.UNPACKING)))
    if len(mine):
        own = Chain(pieces.start[mine], pieces.end[mine], pieces.batch[mine], pieces.link[mine])
        amounts[mine] = handing_over(own, got, batches, shares)
    return amounts
