"""What the rules may look at, gathered from a Run's record and its traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.findings import CommunicationFacts, CopyFacts, DeviceFacts, Facts, StragglerFacts
from workbench.run.differs import versions_in
from workbench.run.rank import RankAnalysis
from workbench.store.record import RunRecord, Timings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workbench.analysis.sync_calls import SyncCalls


def gather(
    rank: RankAnalysis, record: RunRecord | None, loader: Mapping[str, Any] | None = None
) -> Facts:
    """The facts of one rank; the trace's part only where its own checks allow it.

    Args:
        rank: Whose.
        record: What was measured beside the trace.
        loader: What is known of its loader's inside, from :func:`run.loader_facts.loader_facts`.
    """
    steps = rank.steps
    wait = rank.input_wait
    seen = _of_the_trace(rank)
    return Facts(
        rank=rank.rank,
        trace_step_ns=None if steps is None else _ints(steps.time_ns[steps.warmup :]),
        trace_input_wait_ns=None if wait is None else int(wait.wait_ns),
        trace_exposed_input_ns=rank.exposed_input_ns,
        trace_input_batches=None if wait is None else int(wait.batches),
        trace_window_ns=None if rank.window is None else rank.window.length,
        trace_steps=None if steps is None else len(steps.numbers),
        devices=() if rank.voids("devices") else _devices(rank),
        host_breakdown_ns=rank.host_breakdown,
        communication=_communication(rank),
        straggler=_straggler(rank),
        bounds_ns=_bounds(rank, seen),
        trust_ok=rank.trust.ok,
        violations=rank.trust.violations,
        **seen,
        **(_recorded(record) or _header(rank)),
        **(loader or {}),
    )


def _bounds(rank: RankAnalysis, seen: Mapping[str, Any]) -> Mapping[str, float | None] | None:
    """What a step saves at most, by replaying it; of precisions only where products take time."""
    found = rank.replayed.bounds
    worth = any(work.device is not None and work.total() for work in seen.get("matrix_work", ()))
    return found if found is None or not worth else {**found, **rank.replayed.of_precisions()}


def _header(rank: RankAnalysis) -> dict[str, Any]:
    """What the header of a trace from elsewhere tells of where it was recorded."""
    return {"environment": versions_in(rank)}


def recorded(record: RunRecord | None) -> Facts:
    """What a Run's record alone says, without its trace."""
    return Facts(**_recorded(record))


def is_capture(record: RunRecord | None) -> bool:
    """Whether the user's own loop was recorded, which Settings do not reach.

    Only a workload tells what calls its step.
    """
    return record is not None and not record.settings and "step" not in record.effective


def _devices(rank: RankAnalysis) -> tuple[DeviceFacts, ...]:
    return tuple(
        DeviceFacts(
            index=index,
            window_ns=time.range.length,
            busy_ns=time.busy,
            idle_ns=time.idle,
            idle_by_cause=rank.idle[index].by_cause,
            exposed_communication_ns=time.exposed_communication,
            exposed_memory_ns=time.exposed_memory,
            steady_input_ns=_steady_input_ns(rank, index),
            copies=_copies(rank, index),
            **_named(rank, index),
            **_launched(rank, index),
        )
        for index, time in rank.device_time.items()
    )


def _named(rank: RankAnalysis, index: int) -> dict[str, Any]:
    """Type, name and generation of a device, where the trace tells them."""
    found = next((each for each in rank.trace.devices if each.index == index), None)
    return {} if found is None else {"type": found.type, "name": found.name, "arch": found.arch}


def _copies(rank: RankAnalysis, device: int) -> CopyFacts | None:
    """Copies from the host to a device, pageable and pinned ones together."""
    table = rank.details.copies
    if table is None:
        return None
    mine = table[(table["device"] == device) & (table["kind"] == "HtoD")]
    if not len(mine):
        return None
    total = int(mine["total_ns"].sum())
    size = None if mine["bytes"].isna().any() else int(mine["bytes"].sum())
    return CopyFacts(
        total_ns=total,
        exposed_ns=int(mine["exposed_ns"].sum()),
        pageable_ns=int(mine.loc[mine["host_memory"] == "pageable", "total_ns"].sum()),
        bytes=size,
        gb_s=size / total if size and total else None,
    )


def _launched(rank: RankAnalysis, device: int) -> dict[str, Any]:
    """What the steps that count lose, and how the host hands them their work."""
    from workbench.analysis.queue import launch_statistics
    from workbench.analysis.steady import steady_idle

    found: dict[str, Any] = {"steady": steady_idle(rank.trace, rank.idle[device], rank.steps)}
    if rank.voids("queue"):
        return found
    statistics = launch_statistics(rank.trace, rank.steps, rank.launches, device)
    if statistics is not None:
        found["launches"] = statistics.count
        found["launches_per_step"] = statistics.per_step
        found["empty_queue_share"] = statistics.into_empty_queue_share
    found["short_kernel_share"] = rank.details.short_share.get(device)
    return found


def _of_the_trace(rank: RankAnalysis) -> dict[str, Any]:
    """What single rules look at; nothing of devices where they were not recorded."""
    from workbench.analysis.buckets import summed_buckets
    from workbench.analysis.compilations import compilations
    from workbench.analysis.compiling import runs_compiled
    from workbench.analysis.data_parallel import data_parallel_use
    from workbench.analysis.device_allocations import device_allocations
    from workbench.analysis.gradient_syncs import gradient_syncs
    from workbench.analysis.host_backend import host_backend_bytes
    from workbench.analysis.host_code import host_code
    from workbench.analysis.kept_casts import kept_casts
    from workbench.analysis.matmul_shapes import matmul_shapes
    from workbench.analysis.matrix_work import matrix_work
    from workbench.analysis.optimizer_launches import optimizer_launches
    from workbench.analysis.repeated_casts import repeated_casts
    from workbench.analysis.scaled_steps import scaled_steps
    from workbench.analysis.shapes_seen import shapes_seen
    from workbench.analysis.slow_line import slow_line
    from workbench.analysis.small_patterns import small_patterns
    from workbench.run.memory import pressure_of

    trace, launches, steps = rank.trace, rank.launches, rank.steps
    found: dict[str, Any] = {
        "compilations": compilations(trace, steps),
        "runs_compiled": runs_compiled(trace),
        "shapes_seen": None if rank.voids("step_time") else shapes_seen(trace, steps),
        "optimizer": optimizer_launches(trace, launches, steps),
        "scaled_steps": scaled_steps(trace, steps),
        "kept_casts": kept_casts(trace, steps),
        "slow_line": slow_line(trace, steps),
        "peak_bytes": None if rank.memory is None else rank.memory.peak_bytes,
        "memory_pressure": pressure_of(rank),
        "post_mortem": rank.post_mortems[-1] if rank.post_mortems else None,
    }
    if rank.voids("devices"):
        return found
    if not rank.device_indices:
        found["host_code"] = host_code(trace, steps)
    found["matmuls"] = matmul_shapes(trace, launches, steps)
    found["casts"] = repeated_casts(trace, launches, steps)
    found["matrix_work"] = matrix_work(trace, launches, steps)
    found["small_patterns"] = small_patterns(trace, launches, steps)
    found["allocations"] = device_allocations(trace, steps)
    found["gradient_syncs"] = gradient_syncs(trace, launches)
    found["buckets"] = summed_buckets(rank.details.buckets)
    found["data_parallel"] = data_parallel_use(trace, steps, rank.device_time)
    found["host_backend_bytes"] = host_backend_bytes(trace, launches, steps)
    found["sync_calls"] = sync_calls_of(rank)
    return found


def sync_calls_of(rank: RankAnalysis) -> SyncCalls | None:
    """The calls in which the host waits for a device; ``None`` where no device was recorded."""
    from workbench.analysis.sync_calls import sync_calls

    if not rank.device_time or rank.window is None or rank.voids("devices"):
        return None
    return sync_calls(rank.evidence, tuple(rank.idle.values()), rank.steps, rank.window.length)


def _steady_input_ns(rank: RankAnalysis, device: int) -> int | None:
    """Idle time for input that ends in the steps with a step time, warm-up left out.

    The window begins inside its first step when nothing was recorded before it, so the window
    divided by its steps is less than a step.
    """
    import numpy as np

    from workbench.analysis.causes import CAUSE_CODE
    from workbench.analysis.steady import steady_numbers

    steps, idle = rank.steps, rank.idle[device]
    if steps is None or idle.by_cause["input"] is None:
        return None
    pieces = idle.pieces
    waits = pieces.cause == CAUSE_CODE["input"]
    waits &= np.isin(pieces.step, steady_numbers(steps))
    return int((pieces.end - pieces.start)[waits].sum())


def _communication(rank: RankAnalysis) -> tuple[CommunicationFacts, ...]:
    from workbench.analysis.collectives import HOST
    from workbench.analysis.communication import exposed_calls

    found = rank.collectives
    if found is None or not len(found):
        return ()
    made = []
    for device, window in rank.collective_windows.items():
        if window is None:
            continue
        exposed = rank.exposed_communication(device)
        by_call = exposed_calls(found, device, window)
        kinds: dict[str, int] = {}
        for call, ns in by_call.items():
            kind = found.calls[call].kind
            kinds[kind] = kinds.get(kind, 0) + ns
        largest = max(kinds, key=lambda kind: kinds[kind], default=None)
        made.append(
            CommunicationFacts(
                device=None if device == HOST else device,
                window_ns=window.length,
                exposed_wait_ns=exposed.wait,
                exposed_transfer_ns=exposed.transfer,
                calls=len(by_call),
                exposed_calls=sum(ns > 0 for ns in by_call.values()),
                largest=largest,
                largest_exposed_ns=0 if largest is None else kinds[largest],
                ranks=1 if rank.job is None else len(rank.job.parts),
            )
        )
    return tuple(made)


def _straggler(rank: RankAnalysis) -> StragglerFacts | None:
    job = rank.job
    found = None if job is None else job.straggler
    if job is None or found is None or job.waits.step_ns is None:
        return None
    if job.parts[found.position] is not rank.part:
        return None
    return StragglerFacts(
        wait_deficit_ns_per_step=found.wait_deficit_ns_per_step,
        step_ns=job.waits.step_ns,
        ranks=sum(ns is not None for ns in job.waits.wait_ns),
        steps=job.waits.steps,
        phase=found.phase,
        excess_ns_per_step=found.excess_ns_per_step,
        others_wait_ns_per_step=found.others_wait_ns_per_step,
    )


def _recorded(record: RunRecord | None) -> dict[str, Any]:
    if record is None:
        return {}
    known = {name: value for name, value in record.effective.items() if value is not None}
    effective = {**record.effective, **record.settings, **known}
    effective.setdefault("samples_per_step", record.samples_per_step)
    found: dict[str, Any] = {
        "effective": effective,
        "environment": record.environment,
        "load": record.load,
        "garbage_collection": record.garbage_collection,
        "compilation": record.compilation,
        "overhead_ratio": record.overhead_ratio,
        "input_checks": record.input_checks,
        "dtypes": tuple(record.dtypes or ()),
        "loss_scale": record.loss_scale,
        "warnings": tuple(record.warnings),
    }
    alone = (record.loader_alone or {}).get("batches_per_s")
    if alone:
        found["loader_alone_batch_ns"] = 1e9 / alone
    if record.timings is not None:
        found |= _timed(record, record.timings)
    return found


def _timed(record: RunRecord, timings: Timings) -> dict[str, Any]:
    from workbench.statistics.noise import noise_floor

    blocks = paced_blocks(record)
    return {
        "step_ns": tuple(timings.step_ns[timings.warmup :]),
        "input_ns": tuple(timings.input_ns[timings.warmup :]) or None,
        "block_steps": tuple(map(len, steady_blocks(timings))),
        "block_medians_ns": tuple(_median(block) for block in blocks),
        "noise_floor": noise_floor(blocks),
        "replay_step_ns": tuple(timings.replay_ns or ()) or None,
    }


def steady_blocks(timings: Timings) -> list[list[int]]:
    """The measured blocks of step times with the warm-up cut off the first ones."""
    blocks, at = [], 0
    for length in timings.blocks:
        block = timings.step_ns[max(at, timings.warmup) : at + length]
        at += length
        if block:
            blocks.append(block)
    return blocks


def paced_blocks(record: RunRecord) -> list[tuple[float, ...]]:
    """The measured blocks with each step as its pace: workers hand over several batches together.

    None where nothing was measured without the profiler.
    """
    from workbench.statistics.blocks import evened, period

    if record.timings is None or not record.timings.step_ns:
        return []
    blocks = steady_blocks(record.timings)
    repeats = period(record.effective, max(map(len, blocks), default=0))
    return [evened(block, repeats) for block in blocks]


def _median(values: Sequence[float]) -> float:
    import statistics

    return float(statistics.median(values))


def _ints(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
