"""The way of the batch that was waited for, cut at the borders of its stages.

Every instant in which the loop waited belongs to the batch that was delivered next, and to the
stage that this batch was in. Links are sorted and disjoint.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from workbench.analysis.columns import taken
from workbench.analysis.intervals import Spans
from workbench.analysis.stalls.batches import MISSING, Batches, Starts
from workbench.analysis.stalls.parts import Rows, Times


class Link(IntEnum):
    """What the batch was in."""

    NOWHERE = 0
    """No batch is known to have been waited for."""
    START = 1
    """The loader, or the batch's worker, was starting."""
    QUEUED = 2
    """Its fetch had not begun."""
    SAMPLES = 3
    COLLATE = 4
    SENDING = 5
    """Made, and not yet written to the pipe by the thread that its worker has for that."""
    TRANSFER = 6
    """On its way into the training process."""
    UNPACKING = 7
    """Unpickled there, which asks its worker for every tensor."""
    PIN = 8
    HANDED = 9
    """It was there; the loop's thread had other things to do before it had it."""
    UNSEEN = 10
    """In a worker, or a loader, whose inside was not recorded."""
    AFTER = 11
    """The loader had given it; the range that the loop waits in had not ended."""


class Chain(NamedTuple):
    """Links as columns."""

    start: Times
    end: Times
    batch: Rows
    """Place in the delivered batches, or -1."""
    link: Rows


def delivered(batches: Batches) -> Batches:
    """The batches that the loop got, in the order in which it got them."""
    seen = np.flatnonzero(batches.delivered != MISSING)
    return taken(batches, seen[np.argsort(batches.delivered[seen], kind="stable")])


def chain(got: Batches, starts: Starts, waits: Spans) -> Chain:
    """The links of all batches that were delivered.

    Args:
        got: Batches in the order of their delivery.
        starts: Starts of loaders and workers.
        waits: The waits of the loop, which may begin before and end after the loader's own.
    """
    low, until = _claimed(got, waits)
    borders = np.stack([low, *_borders(got, starts, low), got.delivered, until], axis=1)
    borders[:, 1:-1] = np.minimum(borders[:, 1:-1], got.delivered[:, None])
    borders = np.maximum.accumulate(borders, axis=1)
    start, end = borders[:, :-1].ravel(), borders[:, 1:].ravel()
    link = np.tile(np.array(_ORDER, np.int32), len(got))
    batch = np.repeat(np.arange(len(got), dtype=np.int32), len(_ORDER))
    real = np.flatnonzero(end > start)
    return Chain(start[real], end[real], batch[real], link[real])


_ORDER = (
    Link.START,
    Link.UNSEEN,
    Link.QUEUED,
    Link.SAMPLES,
    Link.COLLATE,
    Link.SENDING,
    Link.TRANSFER,
    Link.UNPACKING,
    Link.PIN,
    Link.HANDED,
    Link.AFTER,
)


def _claimed(got: Batches, waits: Spans) -> tuple[Times, Times]:
    """From when each batch was waited for, and until when its wait goes on behind its delivery."""
    middle = got.wait_start + (got.delivered - got.wait_start) // 2
    before = np.concatenate(([np.int64(MISSING)], got.delivered[:-1]))
    after = np.concatenate((got.wait_start[1:], [np.iinfo(np.int64).max]))
    if not len(waits.start):
        return np.maximum(before, got.wait_start), got.delivered
    index = np.maximum(np.searchsorted(waits.start, middle, "right") - 1, 0)
    inside = (waits.start[index] <= middle) & (middle < waits.end[index])
    low = np.where(inside, np.minimum(waits.start[index], got.wait_start), got.wait_start)
    # The next batch of the same wait is waited for as soon as this one has come.
    same = np.append((index[1:] == index[:-1]) & inside[1:], False)
    until = np.where(inside & ~same, np.minimum(waits.end[index], after), got.delivered)
    return np.maximum(before, low), np.maximum(until, got.delivered)


def _borders(got: Batches, starts: Starts, low: Times) -> list[Times]:
    """Ends of the stages before the delivery, in their order; 0-length where one is missing."""
    started = _started(got, starts, low)
    fetched = got.fetch_start != MISSING
    received = np.where(got.received == MISSING, got.delivered, got.received)
    unseen = np.where(fetched, started, received)
    begun = np.where(fetched, got.fetch_start, unseen)
    samples = np.where(fetched, got.collate_start, begun)
    collated = np.where(fetched, got.fetch_end, samples)
    sent = np.where(fetched & (got.sent != MISSING), np.minimum(got.sent, received), collated)
    known = fetched & (got.unpacked_from != MISSING)
    came = np.where(known, np.minimum(got.unpacked_from, received), received)
    pinned = np.where(got.pinned == MISSING, received, got.pinned)
    return [started, unseen, begun, samples, collated, sent, came, received, pinned]


def _started(got: Batches, starts: Starts, low: Times) -> Times:
    """When the loader and the batch's worker had started; ``low`` where that was before."""
    loader = _looked_up(starts.stream, starts.epoch, starts.end, got.stream, got.epoch)
    worker = _looked_up(starts.worker_stream, starts.worker, starts.ready, got.stream, got.worker)
    return np.maximum(low, np.maximum(loader, worker))


def _looked_up(major: Times, minor: Times, value: Times, of: Times, asked: Times) -> Times:
    """The value of each asked pair of numbers; ``MISSING`` where there is none."""
    if not len(value):
        return np.full(len(of), MISSING)
    keys = _keys(major, minor)
    order = np.argsort(keys, kind="stable")
    wanted = _keys(of, asked)
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    known = (keys[order][at] == wanted) & (asked != MISSING)
    return np.where(known, value[order][at], MISSING)


def _keys(major: Times, minor: Times) -> Times:
    return np.where(minor == MISSING, -1, (major << 32) + np.maximum(minor, 0))
