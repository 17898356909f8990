"""What ran beside the loop: loader workers, and counters of memory and machine."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.pages.timeline.labels import Labels
from workbench.pages.timeline.scene import Counter, Track, track
from workbench.trace.table import MemoryEvents, Trace

if TYPE_CHECKING:
    import pandas as pd

MOST_POINTS = 600
"""Points of a counter that are shipped: of more, the least and the greatest of each stretch."""
CPU = 0
"""Device type of the host in memory events (c10::DeviceType)."""
_STAGES = (
    ("fetch_start_ns", "samples_ns", "decode", "samples of batch"),
    ("collate_start_ns", "collate_ns", "collate", "collate batch"),
    ("serialize_start_ns", "serialize_ns", "transfer", "send batch"),
)


def loader_tracks(
    batches: "pd.DataFrame", labels: Labels, *, rank: int, move: int
) -> Iterator[Track]:
    """One track a worker: its batches, and inside them what it did; then pinning."""
    group = "Loader"
    known = batches[batches["worker"].fillna(-1) >= 0]
    for (stream, worker), mine in known.groupby(["stream", "worker"], sort=True):
        parts = [_spans(mine, "fetch_start_ns", "fetch_ns", labels, "other", "batch")]
        parts += [_spans(mine, at, ns, labels, part, said) for at, ns, part, said in _STAGES]
        several = known["stream"].nunique() > 1
        name = f"loader {stream}, worker {worker}" if several else f"worker {worker}"
        yield _joined(parts, name, group, rank, move)
    pinned = _spans(batches, "pin_start_ns", "pin_ns", labels, "pin", "pin batch")
    if len(pinned[0]):
        yield _joined([pinned], "pinning", group, rank, move)


def _spans(  # noqa: PLR0917
    batches: "pd.DataFrame", start: str, length: str, labels: Labels, part: str, said: str
) -> tuple[Any, Any, Any]:
    known = batches[[start, length, "batch"]].dropna()
    known = known[(known[length] > 0) & (known[start] != 0)]
    codes = [labels.of(f"{said} {int(number)}", f"loader:{part}") for number in known["batch"]]
    return (
        known[start].to_numpy(np.int64),
        known[length].to_numpy(np.int64),
        np.array(codes, np.int32),
    )


def _joined(
    parts: list[tuple[Any, Any, Any]], name: str, group: str, rank: int, move: int
) -> Track:
    start, dur, code = (np.concatenate(column) for column in zip(*parts, strict=True))
    return track("loader", name, group, rank, start + move, dur, code)


def memory_counters(memory: MemoryEvents, *, group: str, rank: int, move: int) -> Iterator[Counter]:
    """Allocated and reserved bytes of every device that the allocator told of."""
    pairs = memory.device_type.tolist(), memory.device_index.tolist()
    for kind, index in sorted(set(zip(*pairs, strict=True))):
        mine = (memory.device_type == kind) & (memory.device_index == index)
        place = "host" if kind == CPU else f"device {max(index, 0)}"
        for values, what in (
            (memory.total_allocated, "allocated"),
            (memory.total_reserved, "reserved"),
        ):
            known = mine & (values >= 0)
            if values[known].any():
                at, value = thinned(memory.ts[known] + move, values[known].astype(np.float64))
                yield Counter(
                    name=f"{what} memory, {place}",
                    group=group,
                    rank=rank,
                    unit="bytes",
                    at=at,
                    value=value,
                )


def trace_counters(trace: Trace, *, group: str, rank: int, move: int) -> Iterator[Counter]:
    """Counters that the trace itself holds."""
    counters = trace.counters
    for code, name in enumerate(counters.names):
        here = (counters.series == code) & np.isfinite(counters.value)
        if here.sum() > 1:
            at, value = thinned(counters.ts[here] + move, counters.value[here])
            yield Counter(name=name, group=group, rank=rank, unit="number", at=at, value=value)


def system_counters(
    samples: "pd.DataFrame", *, group: str, rank: int, move: int
) -> Iterator[Counter]:
    """Processor time and memory of the process and of each device, as sampled beside the loop."""
    for process, mine in samples.groupby("process", sort=False):
        if process == "device":
            for device, own in mine.groupby("device"):
                for column, what, unit in _DEVICE_COLUMNS:
                    yield from _sampled(
                        own, column, f"GPU {device} {what}", unit, group, rank, move
                    )
        elif process == "training":
            yield from _sampled(
                mine, "resident_bytes", "process memory", "bytes", group, rank, move
            )
            yield from _busy(mine, group, rank, move)


_DEVICE_COLUMNS = (
    ("gpu_utilization_percent", "utilisation", "percent"),
    ("gpu_memory_used_bytes", "memory used", "bytes"),
    ("gpu_power_w", "power in W", "number"),
)


def _sampled(  # noqa: PLR0917
    samples: "pd.DataFrame", column: str, name: str, unit: Any, group: str, rank: int, move: int
) -> Iterator[Counter]:
    known = samples[["at_ns", column]].dropna()
    if len(known) > 1:
        moments = known["at_ns"].to_numpy(np.int64) + move
        at, value = thinned(moments, known[column].to_numpy(np.float64))
        yield Counter(name=name, group=group, rank=rank, unit=unit, at=at, value=value)


def _busy(samples: "pd.DataFrame", group: str, rank: int, move: int) -> Iterator[Counter]:
    known = samples[["at_ns", "cpu_ns"]].dropna()
    moments = known["at_ns"].to_numpy(np.int64)
    length = np.diff(moments)
    if len(known) > 2 and (length > 0).all():
        cores = np.diff(known["cpu_ns"].to_numpy(np.int64)) / length
        at, value = thinned(moments[:-1] + move, cores)
        yield Counter(
            name="processors used", group=group, rank=rank, unit="number", at=at, value=value
        )


def thinned(at: Any, value: Any, most: int = MOST_POINTS) -> tuple[Any, Any]:
    """At most so many points: of each stretch the least and the greatest, in their order."""
    order = np.argsort(at, kind="stable")
    at, value = at[order], value[order]
    if len(at) <= most:
        return at, value
    edges = np.linspace(0, len(at), most // 2 + 1).astype(np.int64)
    kept: list[int] = []
    for first, last in pairwise(edges.tolist()):
        pair = {first + int(value[first:last].argmin()), first + int(value[first:last].argmax())}
        kept += sorted(pair)
    return at[kept], value[kept]
