"""Launches by device and stream: how many, how late their work begins, how short it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.columns import taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from workbench.analysis.launch_calls import LaunchCalls
    from workbench.analysis.queue_length import QueueSummary

LAUNCH_COLUMNS = (
    *("device", "stream", "calls", "graph_calls", "kernels"),
    *("per_step", "per_step_least", "per_step_most"),
    *("delay_median_ns", "delay_p95_ns", "delay_most_ns", "short_calls", "short_share"),
    *("queue_mean", "queue_most", "queue_empty_share"),
)


def launch_table(
    calls: LaunchCalls, queues: Sequence[QueueSummary], device: int, steps: int
) -> pd.DataFrame:
    """A row for the device (without a stream) and one for each of its streams.

    Args:
        calls: The launches of kernels on the device.
        queues: Its queues over the window; empty where the clocks cannot be compared: then delays
            are missing too.
        device: Index of the device.
        steps: Number of complete steps: only launches in them count; 0 counts all.
    """
    import pandas as pd

    counted = taken(calls, calls.step >= 0) if steps else calls
    known = {queue.stream: queue for queue in queues}
    streams = sorted(set(counted.stream.tolist()), key=lambda s: -int((counted.stream == s).sum()))
    rows = [
        _row(
            counted if stream is None else taken(counted, counted.stream == stream),
            known.get(stream),
            device=device,
            stream=stream,
            steps=steps,
        )
        for stream in (None, *streams)
    ]
    table = pd.DataFrame(rows, columns=list(LAUNCH_COLUMNS))
    whole = ("stream", "per_step_least", "per_step_most", "delay_most_ns", "queue_most")
    decimal = ("per_step", "delay_median_ns", "delay_p95_ns", "short_share")
    table = table.astype(dict.fromkeys(whole, "Int64"))
    return table.astype(dict.fromkeys((*decimal, "queue_mean", "queue_empty_share"), "float64"))


def per_step(calls: LaunchCalls, steps: int) -> NDArray[np.int64]:
    """How many launches each complete step makes."""
    return np.bincount(calls.step[calls.step >= 0], minlength=steps).astype(np.int64)


def _row(
    calls: LaunchCalls,
    queue: QueueSummary | None,
    *,
    device: int,
    stream: int | None,
    steps: int,
) -> dict[str, object]:
    count = per_step(calls, steps) if steps else None
    delay = calls.delay_ns if queue is not None and len(calls) else None
    return {
        "device": device,
        "stream": stream,
        "calls": len(calls),
        "graph_calls": int(calls.graph.sum()),
        "kernels": int(calls.kernels.sum()),
        "per_step": None if count is None else float(count.mean()),
        "per_step_least": None if count is None else int(count.min()),
        "per_step_most": None if count is None else int(count.max()),
        "delay_median_ns": None if delay is None else float(np.median(delay)),
        "delay_p95_ns": None if delay is None else float(np.percentile(delay, 95)),
        "delay_most_ns": None if delay is None else int(delay.max()),
        "short_calls": int(calls.short.sum()),
        "short_share": float(calls.short.mean()) if len(calls) else None,
        "queue_mean": None if queue is None else queue.mean,
        "queue_most": None if queue is None else queue.most,
        "queue_empty_share": None if queue is None else queue.empty_share,
    }
