"""A rank's memory: answers from the ``[memory]`` events of its trace, or from a memory snapshot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from workbench.analysis.memory import MemorySummary
    from workbench.analysis.memory.answer import DeviceMemory
    from workbench.analysis.memory.pressure import MemoryPressure
    from workbench.analysis.snapshots import Snapshot
    from workbench.analysis.snapshots.out_of_memory import PostMortem
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run
    from workbench.trace.table import Trace


def is_snapshot(path: Path) -> bool:
    """Whether a file is a pickle, plain or compressed; only memory snapshots are read of these."""
    from workbench.analysis.snapshots import is_pickle
    from workbench.errors import TraceError
    from workbench.trace.source import open_source

    if path.is_fifo():
        return False
    try:
        opened, head = open_source(path, 1 << 24)
    except TraceError:
        return False
    with opened:
        return is_pickle(head)


def rank_of_snapshot(path: Path) -> RankAnalysis:
    """The analyses of a memory snapshot, which is read now; its table of events is empty."""
    from workbench.analysis.snapshots import read_snapshot
    from workbench.run.rank import RankAnalysis

    snapshot = read_snapshot(path)
    rank = RankAnalysis(
        source=snapshot.source, rank=None, read=lambda: _no_events(snapshot), alone=True
    )
    rank.snapshot = snapshot
    return rank


def snapshot_of(run: Run) -> Run | None:
    """The memory snapshot of a Run's first rank; ``None`` where none was recorded."""
    from workbench.run.run import Run
    from workbench.store.memory import snapshot_beside

    if run.ranks[0].snapshot is not None:
        return run
    if run.record is None or not run.traces:
        return None
    path = snapshot_beside(run.traces[0])
    if not path.is_file():
        return None
    return Run(name=f"{run.name}, memory", ranks=[rank_of_snapshot(path)], traces=[path])


def memory_of(rank: RankAnalysis) -> tuple[DeviceMemory, ...]:
    """Every memory of a rank, the fullest accelerator first; empty where none was recorded."""
    from workbench.analysis.memory.allocations import StepRanges
    from workbench.analysis.memory.answer import answer
    from workbench.analysis.memory.owners import owners_in_trace
    from workbench.analysis.memory.phase_peaks import phase_peaks
    from workbench.analysis.memory.recorded import recorded

    if rank.snapshot is not None:
        return _of_snapshot(rank.snapshot)[0]
    found = recorded(rank.trace)
    if found is None:
        return ()
    steps = rank.steps
    ranges = None
    if steps is not None and len(steps):
        ranges = StepRanges(
            start=steps.start, end=steps.end, numbers=steps.numbers, source=steps.source
        )
    return tuple(
        replace(each, phases=phase_peaks(rank.trace, found.allocations, place, found.live[place]))
        for each in answer(found, owners_in_trace(rank.trace, found.allocations, steps), ranges)
        for place in (found.devices.index(each.device),)
    )


def post_mortems_of(rank: RankAnalysis) -> tuple[PostMortem, ...]:
    """What happened at each out-of-memory event of a snapshot."""
    return () if rank.snapshot is None else _of_snapshot(rank.snapshot)[1]


def _of_snapshot(
    snapshot: Snapshot,
) -> tuple[tuple[DeviceMemory, ...], tuple[PostMortem, ...]]:
    from workbench.analysis.memory.answer import answer
    from workbench.analysis.snapshots.history import history
    from workbench.analysis.snapshots.out_of_memory import post_mortems
    from workbench.analysis.snapshots.owners import owners_in_snapshot
    from workbench.analysis.snapshots.steps import snapshot_steps

    recorded, stacks = history(snapshot)
    owners = owners_in_snapshot(snapshot, recorded, stacks)
    return (
        answer(recorded, owners, snapshot_steps(snapshot)),
        post_mortems(snapshot, recorded, owners),
    )


def pressure_of(rank: RankAnalysis) -> MemoryPressure | None:
    """The memory that grows beyond chance, else the fullest; ``None`` where none was recorded."""
    from workbench.analysis.memory.pressure import pressure

    limits = {device.index: device.memory_bytes for device in rank.details.devices}
    found = [
        pressure(each, limits.get(each.device.number) if each.device.type else None)
        for each in rank.memory_devices
    ]
    grows = [each for each in found if each.grows]
    if grows:
        return max(grows, key=lambda each: each.bytes_per_step)
    full = [each for each in found if each.limit_bytes]
    return max(full, key=lambda each: each.peak_bytes / (each.limit_bytes or 1), default=None) or (
        found[0] if found else None
    )


def table(
    rank: RankAnalysis, ask: Callable[[DeviceMemory], pd.DataFrame | None]
) -> pd.DataFrame | None:
    """One table of every memory of a rank, with the name of the memory in front."""
    import pandas as pd

    found = []
    for each in rank.memory_devices:
        own = ask(each)
        if own is not None:
            own = own.copy()
            own.insert(0, "device", each.device.label)
            found.append(own)
    return pd.concat(found, ignore_index=True) if found else None


def out_of_memory(rank: RankAnalysis) -> pd.DataFrame | None:
    """One row a failed request; ``None`` where no snapshot tells."""
    import pandas as pd

    if rank.snapshot is None:
        return None
    from workbench.analysis.memory.remedies import remedies_text

    rows = [
        (
            *(each.device, each.at_ns, each.requested_bytes, each.device_free_bytes),
            *(each.live_bytes, each.reserved_bytes, each.fragmented, each.line),
            remedies_text(each.remedies),
        )
        for each in rank.post_mortems
    ]
    names = ["device", "at_ns", "requested_bytes", "device_free_bytes", "live_bytes"]
    names += ["reserved_bytes", "fragmented", "line", "what_to_do"]
    return pd.DataFrame(rows, columns=names).astype({"device_free_bytes": "Int64"})


def memory_json(rank: RankAnalysis) -> dict[str, Any]:
    """What the summary document tells of every memory beside the peak of the fullest."""
    return {
        "devices": [_device_json(each) for each in rank.memory_devices],
        "out_of_memory": [
            {
                "device": each.device,
                "requested_bytes": each.requested_bytes,
                "live_bytes": each.live_bytes,
                "reserved_bytes": each.reserved_bytes,
                "fragmented": each.fragmented,
                "line": each.line or None,
            }
            for each in rank.post_mortems
        ],
    }


def _device_json(found: DeviceMemory) -> dict[str, Any]:
    grows = found.growth
    largest = None
    if found.holders is not None and len(found.holders):
        first = found.holders.iloc[0]
        texts = {name: str(first[name]) or None for name in ("module", "operator", "line")}
        largest = {"category": str(first["category"]), **texts, "bytes": int(first["bytes"])}
    return {
        "name": found.device.label,
        "peak_bytes": found.peak_bytes,
        "peak_us": found.peak_ns / 1000,
        "reserved_bytes": found.reserved_bytes,
        "reserved_peak_bytes": found.reserved_peak_bytes,
        "by_category_bytes": None if found.by_category is None else dict(found.by_category),
        "largest": largest,
        "growth_bytes_per_step": None if grows is None else grows.bytes_per_step,
        "grows": None if grows is None else grows.grows,
    }


def sentence(rank: RankAnalysis, *, silent: bool = False) -> str:
    """The memory of a snapshot in one sentence: its peak, and who holds most of it.

    Args:
        rank: Of the snapshot.
        silent: Whether no rule fires.
    """
    from workbench.units import bytes_text, share_text

    found = rank.memory_devices
    if not found:
        return "The snapshot holds no memory of any device."
    first = found[0]
    said = f"{first.device.label} holds {bytes_text(first.peak_bytes)} at most"
    if first.reserved_bytes:
        said += f", of {bytes_text(first.reserved_bytes)} that the allocator has of the driver"
    if first.holders is not None and len(first.holders) and first.peak_bytes:
        top = first.holders.iloc[0]
        whose = str(top["line"] or top["operator"] or "an unknown line")
        share = share_text(int(top["bytes"]) / first.peak_bytes)
        said += f"; {share} of it was taken by {whose} ({top['category']})"
    if rank.post_mortems:
        failed = rank.post_mortems[-1]
        said += f". Then {bytes_text(failed.requested_bytes)} more could not be had"
    elif silent:
        said += ". No rule about memory fires on it"
    return f"{said}."


def snapshot_not_measured(run: Run) -> dict[str, str]:
    """Why a snapshot has no table of times."""
    why = "a memory snapshot tells of memory alone: record a trace of the same steps"
    reasons = dict.fromkeys(NO_TIMES, why)
    if all(not rank.memory_devices for rank in run.ranks):
        reasons["memory"] = "the snapshot holds no memory of any device"
    return reasons


def memory_not_measured(run: Run) -> dict[str, str]:
    """Why a Run with a trace has no table of memory."""
    reasons = {}
    if all(rank.memory is None and not rank.memory_devices for rank in run.ranks):
        reasons["memory"] = "memory was not recorded: use Record(memory=True)"
    elif run.memory_phases is None:
        reasons["memory_phases"] = "the trace tells no requests for memory one by one"
    if run.memory_snapshot is None:
        reasons["memory_snapshot"] = _no_snapshot(run)
    return reasons


def _no_snapshot(run: Run) -> str:
    """Why a Run has no memory snapshot beside its trace."""
    if run.record is None:
        return "a trace holds no snapshot: open the one of torch.cuda.memory._dump_snapshot"
    if not run.record.record.get("memory"):
        return "memory was not recorded: use Record(memory=True)"
    return "only the caching allocator of a GPU keeps a history"


NO_TIMES = (
    *("steps", "outliers", "kernels", "families", "operators", "operator_shapes", "phases"),
    *(
        "modules",
        "copies",
        "launches",
        "idle",
        "gaps",
        "input",
        "stalls",
        "loader",
        "system",
        "power",
    ),
    *("communication", "process_groups", "critical_path", "what_if", "memory_phases"),
)
"""Tables of a Run that need a trace."""


def summary_of(rank: RankAnalysis) -> MemorySummary | None:
    """Peak memory and device allocations, where they were recorded."""
    from workbench.analysis.memory import MemorySummary, memory_summary

    if rank.snapshot is None:
        return memory_summary(rank.trace, rank.steps)
    peaks = {
        (each.device.type, each.device.number): each.peak_bytes for each in rank.memory_devices
    }
    if not peaks:
        return None
    return MemorySummary(
        peak_bytes=max(peaks.values()), peak_by_device=peaks, device_allocations_per_step=None
    )


def _no_events(snapshot: Snapshot) -> Trace:
    """A trace without any event, under the name of the snapshot."""
    import numpy as np

    from workbench.trace.table import Events, Flows, MemoryEvents, Trace

    def empty(kind: type[Any]) -> Any:
        from dataclasses import fields

        dtypes = {"kind": np.uint8, "category": np.int16, "phase": np.uint8}
        dtypes |= {"device": np.int16, "device_type": np.int16, "device_index": np.int16}
        narrow = {"name", "lane", "stream", "shapes", "types", "strides", "stack", "python_module"}
        made = {
            each.name: np.empty(
                0, dtypes.get(each.name, np.int32 if each.name in narrow else np.int64)
            )
            for each in fields(kind)
        }
        return kind(**made)

    return Trace(
        source=snapshot.source,
        events=empty(Events),
        names=(),
        categories=(),
        shapes=(),
        lanes=(),
        flows=empty(Flows),
        memory=empty(MemoryEvents),
        base_ns=snapshot.base_ns,
    )
