"""What a Run holds for every metric of the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.analysis.causes import CAUSES
from workbench.gate.counters import counters
from workbench.gate.sample import Sample, Side

if TYPE_CHECKING:
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run
    from workbench.store.record import RunRecord

_NO_RECORD = (
    "a trace alone has no step times of record; only wb.profile and wb.capture measure them"
)


def side_of(run: Run, *, name: str | None = None) -> Side:
    """Everything that a gate can judge of a Run; of several ranks, of the first."""
    record, rank = run.record, run.rank()
    samples = {
        **_times(record),
        **_parts(rank, record),
        **_single(record, rank),
        **counters(rank, record),
    }
    timings = None if record is None else record.timings
    return Side(
        name=run.name if name is None else name,
        samples=samples,
        environment={} if record is None else dict(record.environment),
        turns=None if timings is None else timings.turns,
    )


def _times(record: RunRecord | None) -> dict[str, Sample]:
    from workbench.run.facts import paced_blocks

    blocks = () if record is None else tuple(tuple(map(float, b)) for b in paced_blocks(record))
    if record is None or not blocks:
        missing = Sample(reason=_NO_RECORD)
        return {"step_time": missing, "throughput": missing}
    samples = record.samples_per_step
    if not samples:
        rate = Sample(reason="the samples of a step are not known")
    else:
        rate = Sample(blocks=tuple(tuple(samples * 1e9 / ns for ns in b) for b in blocks))
    return {"step_time": Sample(blocks=blocks), "throughput": rate}


def _parts(rank: RankAnalysis, record: RunRecord | None) -> dict[str, Sample]:
    """Exposed input, communication and idle causes of every profiled step of the first device."""
    found = next(iter(rank.details.steps.values()), None)
    names = ["exposed_input", "exposed_communication"]
    names += [f"idle_{cause}" for cause in CAUSES if cause != "input"]
    if found is None or rank.voids("causes") or not found.steady.any():
        return dict.fromkeys(names, Sample(reason="the trace has no steps to break down"))
    step = float(found.length[found.steady].mean())

    def sample(*parts: str) -> Sample:
        values = [found.parts[part] for part in parts if found.parts.get(part) is not None]
        known = [v for v in values if v is not None]
        if not known:
            return Sample(reason="this trace cannot show it")
        total = sum(known[1:], known[0])[found.steady]
        return Sample(blocks=(tuple(float(ns) for ns in total),), step=step, apart=True)

    made = {
        "exposed_input": _recorded_input(record, rank) or sample("input"),
        "exposed_communication": sample(
            "exposed_communication_wait", "exposed_communication_transfer", "communication"
        ),
    }
    if found.device is None:
        made |= dict.fromkeys(names[2:], Sample(reason="no device was recorded"))
        return made
    return made | {f"idle_{c}": sample(c) for c in CAUSES if c != "input"}


def _recorded_input(record: RunRecord | None, rank: RankAnalysis) -> Sample | None:
    """Waits for batches without the profiler; beside a working device they are not exposed."""
    timings = None if record is None else record.timings
    if timings is None or not timings.input_ns or rank.device_indices:
        return None
    blocks, at = [], 0
    for length in timings.blocks:
        block = timings.input_ns[max(at, timings.warmup) : at + length]
        at += length
        if block:
            blocks.append(tuple(map(float, block)))
    steady = timings.step_ns[timings.warmup :]
    if not blocks or not steady:
        return None
    return Sample(blocks=tuple(blocks), step=sum(steady) / len(steady))


def _single(record: RunRecord | None, rank: RankAnalysis) -> dict[str, Sample]:
    return {
        "peak_memory": _peak(record, rank),
        "compile_time": _value(_of(record, "compilation", "seconds"), "nothing was compiled"),
        "overhead": _value(
            None if record is None else record.overhead_ratio, "the cost of profiling is not known"
        ),
    }


def _peak(record: RunRecord | None, rank: RankAnalysis) -> Sample:
    """Of tensors on the device, else of the process, else of what the trace saw allocated."""
    found = _of(record, "peak_memory", "device_peak_bytes")
    if not found and (process := _of(record, "peak_memory", "peak_rss_bytes")):
        earlier = _of(record, "peak_memory", "runs_before")
        return Sample(values=(float(process),), runs_before=earlier)
    if not found and rank.memory is not None:
        found = rank.memory.peak_bytes
    return _value(found or None, "no memory was recorded")


def _of(record: RunRecord | None, table: str, name: str) -> Any:
    found = None if record is None else getattr(record, table)
    return None if found is None else found.get(name)


def _value(value: Any, reason: str) -> Sample:
    return Sample(reason=reason) if value is None else Sample(values=(float(value),))
