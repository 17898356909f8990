"""How much the probes slow a loop down: an upper bound, from what they took themselves."""

import time
from typing import Any

from workbench.recording.loader.merge import Row

UNSEEN_NS = 2_000
"""Per batch of a worker: wrapping the queues, outside what the probes time of themselves."""


def overhead(rows: list[Row]) -> dict[str, Any]:
    """Share of the time that fetching and waiting took that was spent in probes.

    Workers slow down by the time that their probes took, over the time they were busy; the
    training process by what its probes cost per batch, measured here, over the time between
    deliveries. The larger of both is the most that a step can have grown by.
    """
    busy = spent = 0
    for row in rows:
        if row.get("fetch_ns") is not None:
            busy += row["fetch_ns"]
            spent += row["probe_ns"] + (UNSEEN_NS if row["worker"] is not None else 0)
    starts = [row["wait_start_ns"] for row in rows if row.get("wait_start_ns") is not None]
    span = max(starts) - min(starts) if len(starts) > 1 else 0
    cost = delivery_cost_ns()
    shares = {
        "workers": spent / busy if busy else None,
        "training_process": cost * (len(starts) - 1) / span if span else None,
    }
    known = [share for share in shares.values() if share is not None]
    return {"overhead_share": max(known) if known else None, "overhead_parts": shares}


def delivery_cost_ns(times: int = 200) -> int:
    """What the training process's probes add to one batch here."""
    from workbench.recording.loader.attributes import Attributes
    from workbench.recording.loader.iterating import IteratorProbe

    def run(iterator: _Empty) -> int:
        began = time.perf_counter_ns()
        for _ in range(times):
            iterator._next_index()
            iterator._worker_result_queue.get()
            iterator._next_data()
        return time.perf_counter_ns() - began

    plain, probed = _Empty(), _Empty()
    attributes = Attributes()
    IteratorProbe(stream=0, attributes=attributes).attach(probed)
    run(plain)
    bare = min(run(plain) for _ in range(3))
    with_probes = min(run(probed) for _ in range(3))
    return max(0, with_probes - bare) // times


class _EmptyQueue:
    def __init__(self) -> None:
        self._poll = bool
        self._recv_bytes = bytes

    def get(self) -> tuple[int, None]:
        self._poll()
        self._recv_bytes()
        return 0, None


class _Empty:
    """An iterator that does nothing, so that only the probes take time."""

    def __init__(self) -> None:
        self._send_idx = self._rcvd_idx = 0
        self._worker_result_queue = _EmptyQueue()

    def _next_index(self) -> None:
        self._send_idx += 1

    def _next_data(self) -> None:
        self._rcvd_idx += 1
