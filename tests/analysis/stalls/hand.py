"""Loader records written by hand, in microseconds, so that a test reads as a time line."""

from typing import Any

import numpy as np

from tests.analysis.stalls.loader import table
from workbench.analysis.intervals import EMPTY, Spans
from workbench.analysis.stalls.parts import Stalls
from workbench.analysis.stalls.split import split_stalls
from workbench.store.loader import BATCH_COLUMNS, EPOCH_COLUMNS, WORKER_COLUMNS, LoaderRecords

Row = dict[str, Any]


def spans(*pairs: tuple[float, float]) -> Spans:
    """Stretches in microseconds."""
    if not pairs:
        return EMPTY
    start, end = (np.array(pairs) * 1000).round().astype(np.int64).T
    return Spans(start, end)


def batch(
    number: int,
    *,
    wait: tuple[float, float] | None = None,
    fetch: tuple[float, float] | None = None,
    collate: float = 0,
    worker: int | None = None,
    received: float | None = None,
    pin: tuple[float, float] | None = None,
    epoch: int = 0,
    **more: Any,
) -> Row:
    """A batch; stages as (start, end), ``collate`` the last part of the fetch, in microseconds.

    The samples take CPU time all along unless ``more`` says otherwise (in nanoseconds).
    """
    row: Row = {"loader": 0, "stream": 0, "epoch": epoch, "batch": number, "worker": worker}
    if wait is not None:
        row |= lengths("wait", wait)
    if fetch is not None:
        row |= lengths("fetch", fetch)
        row["collate_start_ns"] = row["fetch_start_ns"] + row["fetch_ns"] - _ns(collate)
        row |= {"collate_ns": _ns(collate), "collate_cpu_ns": _ns(collate)}
        row["samples_ns"] = row["samples_cpu_ns"] = row["fetch_ns"] - _ns(collate)
        row["fetch_run_delay_ns"] = 0
    if received is not None:
        row["received_ns"] = _ns(received)
    if pin is not None:
        row |= lengths("pin", pin)
    return row | more


def lengths(name: str, span: tuple[float, float]) -> Row:
    """A start and a length."""
    return {f"{name}_start_ns": _ns(span[0]), f"{name}_ns": _ns(span[1]) - _ns(span[0])}


def looked(ns: int, *, read: int, cpu: int, read_cpu: int = 0, **more: int) -> Row:
    """What was seen of samples that were looked at, in nanoseconds."""
    seen = {"looked_ns": ns, "looked_cpu_ns": cpu, "looked_read_ns": read}
    rest = {f"looked_{name}": value for name, value in more.items()}
    return seen | {"looked_read_cpu_ns": read_cpu, "looked_run_delay_ns": 0} | rest


def records(*rows: Row, epochs: tuple[Row, ...] = (), workers: tuple[Row, ...] = ()) -> Any:
    """The tables of a Run."""
    return LoaderRecords(
        batches=table(list(rows), BATCH_COLUMNS),
        epochs=table(list(epochs), EPOCH_COLUMNS),
        workers=table(list(workers), WORKER_COLUMNS),
        about={},
    )


def started(at: tuple[float, float], *, workers: int = 0, epoch: int = 0) -> Row:
    """A start of the loader."""
    return {
        "loader": 0,
        "stream": 0,
        "epoch": epoch,
        "start_ns": _ns(at[0]),
        "iter_ns": _ns(at[1]) - _ns(at[0]),
        "workers": workers,
    }


def split(found: Any, exposed: Spans, **more: Any) -> Stalls:
    """The split of these records; the exposed stretches are the waits unless told otherwise."""
    made = split_stalls(found, exposed, more.pop("waits", exposed), **more)
    assert isinstance(made, Stalls), made
    return made


def told(found: Stalls) -> dict[str, float]:
    """Parts that are not zero, in microseconds."""
    return {name: ns / 1000 for name, ns in found.by_part.items() if ns}


def _ns(us: float) -> int:
    return round(us * 1000)
