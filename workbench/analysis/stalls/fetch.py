"""What a fetch was spent on, as shares: reading, a processor, waiting for one, anything else.

The thread's own clocks tell wall time, CPU time and the time it was ready with no processor free;
what remains it was blocked. Reads were timed on the samples that were looked at. Numbers that a
batch lacks are taken from the other batches of its epoch, else of its loader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Values = NDArray[np.float64]

SEEN_READS = 0.05
"""Own choice: with less of the samples in reads that were seen, bytes from storage came another
way: memory-mapped pages, readers inside C++ code."""
LEAST_RATE = 1e-3
"""Bytes a nanosecond, 1 MB/s: slower storage is not believed, and what is left was blocked by
something else."""

HELPED_LEAST = 0.1
"""Own choice: a wait beside which other threads computed for less of it was no wait for them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FetchShares:
    """A row a batch; the columns of ``samples`` and of ``collate`` sum to 1 each."""

    samples: Values
    """In storage, decoding, ready with no processor free, blocked by something else."""
    collate: Values
    """Putting together, ready with no processor free."""
    reads_seen: bool
    delays_seen: bool


def fetch_shares(frame: pd.DataFrame, crowded: Values | None = None) -> FetchShares:
    """The shares of every batch of ``loader.arrow``.

    Args:
        frame: The batches.
        crowded: For each batch the share of its fetch in which all usable processors were taken;
            only asked where the kernel did not tell how long threads waited for one.
    """
    groups = _groups(frame)
    wall, cpu = _numbers(frame, "samples_ns"), _numbers(frame, "samples_cpu_ns")
    joined, joined_cpu = _numbers(frame, "collate_ns"), _numbers(frame, "collate_cpu_ns")
    wall, joined = np.nan_to_num(wall), np.nan_to_num(joined)
    cpu = np.minimum(np.nan_to_num(cpu), wall)
    joined_cpu = np.minimum(np.nan_to_num(joined_cpu), joined)
    off, joined_off = wall - cpu, joined - joined_cpu
    delay = _filled(_numbers(frame, "fetch_run_delay_ns"), off + joined_off, groups)
    delays_seen = delay is not None or crowded is not None
    if delay is None:
        delay = (np.zeros(len(frame)) if crowded is None else crowded) * (off + joined_off)
    delayed, joined_delayed = _divided(delay, off, joined_off, cpu, joined_cpu)
    counted = _numbers(frame, "collate_run_delay_ns")
    joined_delayed = np.where(np.isnan(counted), joined_delayed, np.minimum(counted, joined_off))
    delayed = np.where(np.isnan(counted), delayed, np.clip(delay - joined_delayed, 0, off))
    blocked = off - delayed
    read, reads_seen = _read(frame, blocked, groups)
    helped, kept = _shared(_helped(frame, wall, joined), blocked - read, cpu, delayed)
    rest = blocked - read - helped - kept
    samples = np.stack([read, cpu + helped, delayed + kept, rest], axis=1)
    collate = np.stack([joined - joined_delayed, joined_delayed], axis=1)
    return FetchShares(
        samples=_shares(samples, fallback=3),
        collate=_shares(collate, fallback=0),
        reads_seen=reads_seen,
        delays_seen=delays_seen,
    )


def _divided(
    delay: Values, off: Values, joined_off: Values, cpu: Values, joined_cpu: Values
) -> tuple[Values, Values]:
    """The wait for a processor of samples and of collate: as each used one, within its own time."""
    both = cpu + joined_cpu
    share = np.divide(joined_cpu, both, out=np.zeros(len(both)), where=both > 0)
    joined = np.minimum(joined_off, delay * share)
    samples = np.minimum(off, delay - joined)
    return samples, np.minimum(joined_off, delay - samples)


def _read(
    frame: pd.DataFrame, blocked: Values, groups: list[NDArray[np.int64]]
) -> tuple[Values, bool]:
    """Time blocked by storage, and whether reads could be seen at all.

    What the samples that were looked at waited in reads is known; the others of a batch were
    blocked by reads as much of the time as those around them.
    """
    wall = _numbers(frame, "samples_ns")
    looked, inside = _numbers(frame, "looked_ns"), _numbers(frame, "looked_read_ns")
    inside_cpu = np.nan_to_num(_numbers(frame, "looked_read_cpu_ns"))
    looked_cpu = np.nan_to_num(_numbers(frame, "looked_cpu_ns"))
    delay = np.nan_to_num(_numbers(frame, "looked_run_delay_ns"))
    busy = np.divide(inside_cpu, looked_cpu, out=np.zeros(len(frame)), where=looked_cpu > 0)
    looked_blocked = np.clip(looked - looked_cpu - delay, 0, None)
    counted = _numbers(frame, "looked_read_run_delay_ns")
    guessed = delay * np.minimum(busy, 1)
    paused = np.where(np.isnan(counted), guessed, np.minimum(counted, delay))
    waited = np.clip(inside - inside_cpu - paused, 0, looked_blocked)
    share, seen_share = _around(waited, looked_blocked, groups), _around(inside, looked, groups)
    storage = _storage(frame, groups, np.nan_to_num(wall)) / LEAST_RATE
    if share is None or seen_share is None:
        return np.minimum(blocked, storage), bool((storage > 0).any())
    known, of = np.nan_to_num(waited), np.nan_to_num(looked_blocked)
    read = np.minimum(blocked, known + share * np.clip(blocked - of, 0, None))
    hidden = (seen_share < SEEN_READS) & (storage > 0)
    return np.where(hidden, np.minimum(blocked, np.maximum(read, storage)), read), True


def _storage(frame: pd.DataFrame, groups: list[NDArray[np.int64]], wall: Values) -> Values:
    """Bytes that came from storage for the samples, by the kernel's count.

    Collate reads as well: where samples were looked at, theirs are told from it.
    """
    looked = _around(_numbers(frame, "looked_storage_bytes"), _numbers(frame, "looked_ns"), groups)
    if looked is not None:
        return looked * wall
    found = _filled(_numbers(frame, "storage_bytes"), wall, groups, most=np.inf)
    return np.zeros(len(frame)) if found is None else found


def _helped(frame: pd.DataFrame, wall: Values, joined: Values) -> Values:
    """CPU time of a worker's other threads: they decode while its own thread waits for them."""
    whole = wall + joined
    others = _numbers(frame, "fetch_process_cpu_ns") - _numbers(frame, "fetch_cpu_ns")
    others -= np.nan_to_num(_numbers(frame, "serialize_cpu_ns"))
    others[frame["worker"].isna().to_numpy()] = np.nan  # the loop's threads have other work
    share = np.divide(wall, whole, out=np.zeros(len(frame)), where=whole > 0)
    return np.clip(np.nan_to_num(others), 0, None) * share


def _shared(helpers: Values, waited: Values, cpu: Values, delayed: Values) -> tuple[Values, Values]:
    """Of the wait for a worker's other threads: how long they worked, and had no processor.

    They share the machine with the worker's own thread, and so get processors at the rate at which
    that got them when it was ready: threads of a pool are gone when their delays could be read.
    A little CPU time is the queue's thread, for which no sample waits.
    """
    helpers = np.where(helpers >= HELPED_LEAST * waited, helpers, 0.0)
    ready = cpu + delayed
    rate = np.divide(cpu, ready, out=np.ones(len(cpu)), where=(ready > 0) & (cpu > 0))
    taken = np.minimum(waited, helpers / rate)
    return taken * rate, taken * (1 - rate)


def _filled(
    value: Values, of: Values, groups: list[NDArray[np.int64]], most: float = 1.0
) -> Values | None:
    """The values, those that are missing as the same share of ``of`` as in the batches around."""
    share = _ratio(value, of, groups)
    if share is None:
        return None
    found = np.where(np.isnan(value), share * of, value)
    return np.clip(found, 0, most * of)


def _ratio(part: Values, whole: Values, groups: list[NDArray[np.int64]]) -> Values | None:
    """A batch's own ratio, else that of the batches around it; ``None`` for none."""
    around = _around(part, whole, groups)
    if around is None:
        return None
    known = ~np.isnan(part) & (whole > 0)
    return np.divide(part, whole, out=around, where=known)


def _around(part: Values, whole: Values, groups: list[NDArray[np.int64]]) -> Values | None:
    """The ratio over the batches of the same epoch, else of the same loader, else over all."""
    known = ~np.isnan(part) & ~np.isnan(whole)
    if not known.any():
        return None
    found = np.full(len(part), np.nan)
    for group in groups:
        count = int(group.max()) + 1
        parts = np.bincount(group[known], part[known], count)
        wholes = np.bincount(group[known], whole[known], count)
        mean = np.divide(parts, wholes, out=np.full(count, np.nan), where=wholes > 0)
        found = np.where(np.isnan(found), mean[group], found)
    filled: Values = np.nan_to_num(found)
    return filled


def _groups(frame: pd.DataFrame) -> list[NDArray[np.int64]]:
    """Numbers of the epoch, of the loader, and of all together."""
    stream = frame["stream"].fillna(-1).astype("int64").to_numpy()
    loader = frame["loader"].fillna(-1).astype("int64").to_numpy()
    epoch = frame["epoch"].fillna(-1).astype("int64").to_numpy()
    of_epoch = np.unique(np.stack([stream, epoch]), axis=1, return_inverse=True)[1]
    of_loader = np.unique(loader, return_inverse=True)[1]
    return [of_epoch.ravel(), of_loader.ravel(), np.zeros(len(frame), np.int64)]


def _numbers(frame: pd.DataFrame, name: str) -> Values:
    return np.array(frame[name].astype("float64").to_numpy(na_value=np.nan), np.float64)


def _shares(amounts: Values, *, fallback: int) -> Values:
    whole = amounts.sum(axis=1)
    empty = whole <= 0
    amounts = amounts.copy()
    amounts[empty, fallback] = 1.0
    return np.asarray(amounts / np.where(empty, 1.0, whole)[:, None], np.float64)
