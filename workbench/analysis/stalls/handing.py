"""What a batch that is made waits for until the training process has it.

A thread of its worker pickles it beside the fetch of the next one, and another gives the training
process what it asks for while it unpickles. Where that fetch computes in Python it holds the
interpreter's lock, and they wait for it, up to the switch interval (5 ms) at every turn. No faster
hand-over ends such a wait; cheaper samples do. Nor does it where threads get no processor. A
batch in the pipe, while another one is unpickled, waits for what holds that one up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.stalls.batches import MISSING, Batches
from workbench.analysis.stalls.chain import Chain, Link
from workbench.analysis.stalls.fetch import FetchShares
from workbench.analysis.stalls.parts import PART, PARTS, Rows, Times, rounded
from workbench.analysis.stalls.serving import busy_spans, inside_of, pin_spans, worker_key

_HELD = ("decode", "oversubscription", "collate")
"""Parts of a fetch in which it can hold the lock; blocked threads have given it up."""
_NEXT_TO_NOTHING = 1e-12


def handing_over(pieces: Chain, got: Batches, batches: Batches, shares: FetchShares) -> Times:
    """A row a piece, a column a part: what it did itself is transfer, what held it up is not.

    Of the time beside a fetch of its worker, at most the share in which that fetch computed can
    have held the lock, and none of the CPU time that pickling or unpickling used itself.
    """
    cut, of = _behind_others(pieces, got)
    amounts = np.zeros((len(pieces.start), len(PARTS)), np.int64)
    np.add.at(amounts, of, _each(cut, got, batches, shares))
    return amounts


def _behind_others(pieces: Chain, got: Batches) -> tuple[Chain, Rows]:
    """Pieces in the pipe while another batch was unpickled as pieces of that; and whose they are.

    One thread unpickles all batches of a loader, one after the other.
    """
    known = (got.unpacked_from != MISSING) & (got.received > got.unpacked_from)
    piped = pieces.link == Link.TRANSFER
    rest = np.flatnonzero(~piped)
    found, whose = [_rows(pieces, rest)], [rest]
    for stream in np.unique(got.stream[pieces.batch[piped]]):
        mine = np.flatnonzero(piped & (got.stream[pieces.batch] == stream))
        others = np.flatnonzero(known & (got.stream == stream)).astype(np.int32)
        others = others[np.argsort(got.unpacked_from[others], kind="stable")]
        begun, ended = got.unpacked_from[others], got.received[others]
        own = _rows(pieces, mine)
        edges = np.unique(np.concatenate((own.start, own.end, begun, ended)))
        start, end = edges[:-1], edges[1:]
        at = _inside(own.start, own.end, start)
        start, end, at = start[at >= 0], end[at >= 0], at[at >= 0]
        behind = _inside(begun, ended, start)
        link = np.where(behind >= 0, Link.UNPACKING, Link.TRANSFER).astype(np.int32)
        batch = np.where(behind >= 0, np.append(others, -1)[behind], own.batch[at])
        found.append(Chain(start, end, batch, link))
        whose.append(mine[at])
    times = (np.concatenate([cut.start for cut in found]), np.concatenate([c.end for c in found]))
    rows = (np.concatenate([cut.batch for cut in found]), np.concatenate([c.link for c in found]))
    return Chain(*times, *rows), np.concatenate(whose).astype(np.int32)


def _rows(pieces: Chain, rows: NDArray[np.int64]) -> Chain:
    return Chain(pieces.start[rows], pieces.end[rows], pieces.batch[rows], pieces.link[rows])


def _inside(start: Times, end: Times, at: Times) -> NDArray[np.int64]:
    """The stretch that each instant lies in, or -1; stretches are sorted and disjoint."""
    place = np.searchsorted(start, at, "right") - 1
    return np.where((place >= 0) & (at < np.append(end, MISSING)[place]), place, -1)


def _each(pieces: Chain, got: Batches, batches: Batches, shares: FetchShares) -> Times:
    """The same of pieces that each are in the batch's own hand-over."""
    length = pieces.end - pieces.start
    amounts = np.zeros((len(length), len(PARTS)), np.int64)
    delayed = _delayed(pieces, got)
    pinning = np.where(
        pieces.link == Link.TRANSFER,
        inside_of(pieces.start, pieces.end, got.stream[pieces.batch] << 32, pin_spans(batches)),
        0,
    )
    pinning = np.minimum(pinning, length - delayed)
    held, weights = _held(pieces, got, batches, shares, length - delayed)
    columns = np.array([PART[name] for name in _HELD])
    amounts[:, columns] = rounded(held, weights)
    amounts[:, PART["oversubscription"]] += delayed
    amounts[:, PART["pin"]] = pinning
    amounts[:, PART["transfer"]] = length - delayed - pinning - held
    return amounts


def _held(
    pieces: Chain, got: Batches, batches: Batches, shares: FetchShares, most: Times
) -> tuple[Times, NDArray[np.float64]]:
    """How long the next fetch held the lock, and by which of ``_HELD``."""
    key = worker_key(got)[pieces.batch]
    beside = inside_of(pieces.start, pieces.end, key, busy_spans(batches))
    holding = _holding(pieces, _fetched_at(key, pieces.end, batches), batches, shares)
    whole = holding.sum(axis=1)
    own = _own(pieces, got) * (pieces.end - pieces.start)
    held = np.clip(np.minimum(beside * whole, most - own), 0, None).astype(np.int64)
    held[pieces.link == Link.TRANSFER] = 0
    return held, holding / np.maximum(whole, _NEXT_TO_NOTHING)[:, None]


def unpacking_ns(batches: Batches, shares: FetchShares) -> float | None:
    """Of all unpickling the hand-over's own time: without what computing workers kept it waiting.

    ``None`` where no batch was seen to be unpickled.
    """
    known = (batches.unpacked_from != MISSING) & (batches.received != MISSING)
    mine = np.flatnonzero(known).astype(np.int32)
    if not len(mine):
        return None
    link = np.full(len(mine), Link.UNPACKING, np.int32)
    pieces = Chain(batches.unpacked_from[mine], batches.received[mine], mine, link)
    return float(handing_over(pieces, batches, batches, shares)[:, PART["transfer"]].sum())


def _fetched_at(key: Times, end: Times, batches: Batches) -> NDArray[np.int64]:
    """The last fetch that a worker had begun before an instant, or -1."""
    seen = np.flatnonzero((batches.fetch_start != MISSING) & (batches.worker != MISSING))
    theirs, start = worker_key(batches)[seen], batches.fetch_start[seen]
    found = np.full(len(key), -1, np.int64)
    for one in np.unique(key):
        mine = theirs == one
        order = np.argsort(start[mine], kind="stable")
        rows = np.insert(seen[mine][order], 0, -1)
        asked = key == one
        found[asked] = rows[np.searchsorted(start[mine][order], end[asked])]
    return found


def _holding(
    pieces: Chain, at: NDArray[np.int64], batches: Batches, shares: FetchShares
) -> NDArray[np.float64]:
    """Of the fetch beside each piece the shares of ``_HELD``, by the stage it was in meanwhile."""
    start, middle, end = batches.fetch_start[at], batches.collate_start[at], batches.fetch_end[at]
    seen = end != MISSING
    start, middle, end = (np.where(seen, each, 0) for each in (start, middle, end))
    samples = np.minimum(pieces.end, middle) - np.maximum(pieces.start, start)
    collate = np.minimum(pieces.end, end) - np.maximum(pieces.start, middle)
    samples, collate = (np.where(seen, np.maximum(each, 0), 0) for each in (samples, collate))
    beside = samples + collate > 0
    # Of a fetch that had ended, all of it: another one may have been beside the piece before it.
    samples = np.where(beside, samples, middle - start).astype(np.float64)
    collate = np.where(beside, collate, end - middle).astype(np.float64)
    whole = np.maximum(samples + collate, 1.0)
    delayed = shares.samples[at, 2] * samples + shares.collate[at, 1] * collate
    decode, put = shares.samples[at, 1] * samples, shares.collate[at, 0] * collate
    held = np.stack([decode, delayed, put], axis=1)
    return np.asarray(held / whole[:, None], np.float64)


def _own(pieces: Chain, got: Batches) -> NDArray[np.float64]:
    """Of the stage that a piece lies in, the share in which it was really being handed over."""
    sending, batch = pieces.link == Link.SENDING, pieces.batch
    start = np.where(sending, got.fetch_end[batch], got.unpacked_from[batch])
    end = np.where(sending, got.sent[batch], got.received[batch])
    cpu = np.where(sending, got.pickling_cpu[batch], got.unpickling_cpu[batch])
    return _share(cpu, start, end)


def _delayed(pieces: Chain, got: Batches) -> Times:
    """Of each piece, how long its worker's side, or the training process's, had no processor."""
    sending, batch = pieces.link == Link.SENDING, pieces.batch
    sent = np.where(got.sent == MISSING, got.fetch_end, got.sent)
    begun = np.minimum(np.maximum(sent, _received_before(got)), got.received)
    start = np.where(sending, got.fetch_end[batch], begun[batch])
    end = np.where(sending, sent[batch], got.received[batch])
    delay = np.where(sending, got.sending_delay[batch], got.receiving_delay[batch])
    inside = np.minimum(pieces.end, end) - np.maximum(pieces.start, start)
    delayed: Times = (np.maximum(inside, 0) * _share(delay, start, end)).astype(np.int64)
    return delayed


def _received_before(got: Batches) -> Times:
    """When the thread that received each batch had done with the one before it."""
    order = np.lexsort((got.received, got.stream))
    found = np.full(len(got), MISSING)
    same = got.stream[order][1:] == got.stream[order][:-1]
    found[order[1:]] = np.where(same, got.received[order[:-1]], MISSING)
    return found


def _share(part: Times, start: Times, end: Times) -> NDArray[np.float64]:
    """The part of each stretch, 0 where it is not known."""
    known = (start != MISSING) & (end > start) & (part != MISSING)
    taken = np.where(known, end - np.where(known, start, 0), 1).astype(np.float64)
    return np.where(known, np.clip(np.where(known, part, 0) / taken, 0.0, 1.0), 0.0)
