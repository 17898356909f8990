"""Epoch by epoch: what a batch takes to make, and what it is spent on; cold against warm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.stalls.fetch import FetchShares, fetch_shares

if TYPE_CHECKING:
    import pandas as pd

    from workbench.store.loader import LoaderRecords

MADE_OF = ("storage", "decode", "collate", "oversubscription", "other")
"""Parts of making a batch, in the order in which they are drawn."""


@dataclass(frozen=True, kw_only=True)
class EpochTimes:
    """One epoch of the loader that delivered most batches; means over its batches."""

    number: int
    """Counted from 0 in the order in which they started."""
    batches: int
    made_ns: float
    """Fetch of a batch."""
    parts_ns: Mapping[str, float]
    """The same by ``MADE_OF``."""
    storage_bytes: float | None
    """Bytes from storage of a batch, by the kernel's count."""
    wait_ns: float
    """The loop's wait for a batch, the first one's left out where there are others."""
    start_ns: int
    """From the loader's start to its first batch."""


def epoch_times(records: LoaderRecords) -> tuple[EpochTimes, ...]:
    """Every epoch whose batches were seen being made, in order."""
    batches = records.batches
    seen = batches[batches["wait_ns"].notna() & batches["fetch_ns"].notna()]
    if not len(seen):
        return ()
    loader = seen["loader"].mode().iloc[0]
    seen = seen[seen["loader"] == loader]
    shares = fetch_shares(seen)
    epochs = records.epochs[records.epochs["loader"] == loader].sort_values("start_ns")
    found: list[EpochTimes] = []
    for epoch in epochs.itertuples(index=False):
        chosen = (seen["stream"] == epoch.stream) & (seen["epoch"] == epoch.epoch)
        mine = chosen.fillna(value=False).to_numpy(dtype=bool)
        if mine.any():
            found.append(_epoch(seen[mine], _taken(shares, mine), len(found), int(epoch.iter_ns)))
    return tuple(found)


def _epoch(own: pd.DataFrame, shares: FetchShares, number: int, iter_ns: int) -> EpochTimes:
    samples = own["samples_ns"].fillna(0).astype("float64").to_numpy()
    collate = own["collate_ns"].fillna(0).astype("float64").to_numpy()
    storage, decode, delayed, other = (shares.samples * samples[:, None]).mean(axis=0).tolist()
    put, put_delayed = (shares.collate * collate[:, None]).mean(axis=0).tolist()
    waits = own.sort_values("wait_start_ns")["wait_ns"].astype("float64").to_numpy()
    read = own["storage_bytes"].dropna()
    return EpochTimes(
        number=number,
        batches=len(own),
        made_ns=float(own["fetch_ns"].astype("float64").mean()),
        parts_ns=dict(
            zip(MADE_OF, (storage, decode, put, delayed + put_delayed, other), strict=True)
        ),
        storage_bytes=float(read.astype("float64").mean()) if len(read) else None,
        wait_ns=float(waits[1:].mean() if len(waits) > 1 else waits[0]),
        start_ns=iter_ns + int(waits[0]),
    )


def _taken(shares: FetchShares, mine: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> FetchShares:
    return FetchShares(
        samples=shares.samples[mine],
        collate=shares.collate[mine],
        reads_seen=shares.reads_seen,
        delays_seen=shares.delays_seen,
    )
