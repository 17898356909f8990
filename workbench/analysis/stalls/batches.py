"""The times of batches as arrays: a row a batch, whole nanoseconds, ``MISSING`` where unseen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.stalls.parts import Rows, Times

if TYPE_CHECKING:
    import pandas as pd

    from workbench.store.loader import LoaderRecords

MISSING = np.iinfo(np.int64).min
"""In place of an instant or a length that was not seen."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batches:
    """When each batch was in which stage, on the host's clock of the trace."""

    row: Rows
    """Place in the loader's records."""
    stream: Times
    epoch: Times
    worker: Times
    """Number of the worker process; ``MISSING``: the training process, or unknown."""
    fetch_start: Times
    fetch_end: Times
    collate_start: Times
    """``fetch_end`` where no collate was seen."""
    sent: Times
    """When its worker's queue thread had written it to the pipe."""
    pickling_cpu: Times
    """CPU time of that thread while it pickled the batch."""
    sending_delay: Times
    """How long it was ready with no processor free, from when it was given the batch."""
    unpacked_from: Times
    """From when on the training process unpickled it."""
    unpickling_cpu: Times
    """CPU time of its thread meanwhile."""
    receiving_delay: Times
    """How long that thread was ready with no processor free, while it waited and unpickled."""
    received: Times
    """When the batch had arrived in the training process; of one made there, ``fetch_end``."""
    pinned: Times
    """When it was pinned; ``received`` of a batch that was not."""
    pin_start: Times
    wait_start: Times
    delivered: Times

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, kw_only=True, eq=False)
class Starts:
    """Starts of loaders and of their worker processes."""

    stream: Times
    epoch: Times
    start: Times
    end: Times
    workers: Times
    worker_stream: Times
    worker: Times
    ready: Times


def batches_of(frame: pd.DataFrame) -> Batches:
    """The batches of ``loader.arrow``."""
    start, taken = _column(frame, "fetch_start_ns"), _column(frame, "fetch_ns")
    fetch_end = _sum(start, taken)
    worker = _column(frame, "worker")
    arrived = _column(frame, "received_ns")
    here = (worker == MISSING) & (arrived == MISSING)
    received = np.where(here, fetch_end, arrived)
    pin_start = _column(frame, "pin_start_ns")
    pinned = _sum(pin_start, _column(frame, "pin_ns"))
    wait = _column(frame, "wait_start_ns")
    collate = _column(frame, "collate_start_ns")
    pickled = _sum(_column(frame, "serialize_start_ns"), _column(frame, "serialize_ns"))
    return Batches(
        row=np.arange(len(frame), dtype=np.int32),
        stream=_column(frame, "stream"),
        epoch=_column(frame, "epoch"),
        worker=worker,
        fetch_start=start,
        fetch_end=fetch_end,
        collate_start=np.where(collate == MISSING, fetch_end, collate),
        sent=_sum(pickled, _column(frame, "send_ns")),
        pickling_cpu=_column(frame, "serialize_cpu_ns"),
        sending_delay=_column(frame, "send_run_delay_ns"),
        receiving_delay=_column(frame, "receive_run_delay_ns"),
        unpacked_from=_difference(arrived, _column(frame, "unpickle_ns")),
        unpickling_cpu=_column(frame, "unpickle_cpu_ns"),
        received=received,
        pinned=np.where(pinned == MISSING, received, pinned),
        pin_start=pin_start,
        wait_start=wait,
        delivered=_sum(wait, _column(frame, "wait_ns")),
    )


def starts_of(records: LoaderRecords) -> Starts:
    """When loaders and their workers started."""
    epochs, workers = records.epochs, records.workers
    start = _column(epochs, "start_ns")
    return Starts(
        stream=_column(epochs, "stream"),
        epoch=_column(epochs, "epoch"),
        start=start,
        end=_sum(start, _column(epochs, "iter_ns")),
        workers=_column(epochs, "workers"),
        worker_stream=_column(workers, "stream"),
        worker=_column(workers, "worker"),
        ready=_column(workers, "ready_ns"),
    )


def _column(frame: pd.DataFrame, name: str) -> Times:
    return np.asarray(frame[name].astype("Int64").fillna(MISSING).to_numpy(), np.int64)


def _sum(start: Times, length: Times) -> Times:
    seen = (start != MISSING) & (length != MISSING)
    return np.where(seen, start + np.where(seen, length, 0), MISSING)


def _difference(end: Times, length: Times) -> Times:
    seen = (end != MISSING) & (length != MISSING)
    return np.where(seen, end - np.where(seen, length, 0), MISSING)
