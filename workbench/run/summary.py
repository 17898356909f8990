"""The document that ``workbench analyze --json`` prints: schema ``workbench.summary/1``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.findings import Finding
from workbench.run import summary_tables
from workbench.run.breadth import breadth, breadth_not_measured
from workbench.run.cost_face import costs_not_measured
from workbench.run.loader import loader_not_measured
from workbench.run.memory import memory_not_measured, snapshot_not_measured
from workbench.run.rank import RankAnalysis
from workbench.run.stalls import stalls_json
from workbench.run.summary_tables import microseconds
from workbench.store.record import RunRecord

if TYPE_CHECKING:
    from workbench.analysis.device_time import DeviceTime
    from workbench.analysis.idle import Idle
    from workbench.run.job import Job
    from workbench.run.run import Run
    from workbench.trace.table import Device

SCHEMA = "workbench.summary/1"
LEAST_STEPS_P95 = 20
"""Below it a 95th percentile is only the maximum under another name."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The numbers of a Run in one document, and the reasons for what it lacks."""

    document: Mapping[str, Any]
    not_measured: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """The document as ``workbench analyze --json`` prints it."""
        return dict(self.document)

    def __getitem__(self, name: str) -> Any:
        return self.document[name]

    def __repr__(self) -> str:
        from workbench.pages.summary import summary_text
        from workbench.run.summary_rows import summary_rows

        return summary_text(summary_rows(self.document, self.not_measured))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.pages.summary import summary_html
        from workbench.run.summary_rows import summary_rows

        rows = summary_rows(self.document, self.not_measured)
        return {"text/html": summary_html(rows), "text/plain": repr(self)}


def summarise(run: Run) -> Summary:
    """The summary of a Run."""
    return Summary(
        document=summary_document(run.ranks, run.record, run.findings, run.job),
        not_measured=not_measured(run),
    )


def not_measured(run: Run) -> dict[str, str]:
    """Why a table of the Run is ``None``: no rank has it."""
    ranks, reasons = run.ranks, {}
    if ranks[0].snapshot is not None:
        return snapshot_not_measured(run)
    if not any(rank.device_indices for rank in ranks):
        reasons["kernels"] = not_idle_because(ranks[0])
    if not any(rank.idle_causes for rank in ranks):
        reasons["idle"] = reasons["gaps"] = not_idle_because(ranks[0])
    if all(rank.operators is None for rank in ranks):
        reasons["operators"] = "the trace holds no operator of the framework: record CPU activity"
    if all(rank.steps is None for rank in ranks):
        reasons["steps"] = (
            "the trace marks no steps, so the window is all of it: call profiler.step(), use "
            "wb.profile, or open it with infer_steps=True (--infer-steps)"
        )
    elif _no_step_time(run):
        reasons["step_times"] = (
            "one complete step has no time from completion to completion: record at least two"
        )
    reasons |= breadth_not_measured(run) | costs_not_measured(run)
    if all(rank.replayed.outcomes is None for rank in ranks):
        reasons["critical_path"] = reasons["what_if"] = ranks[0].replayed.reason
    reasons |= loader_not_measured(run)
    if all(rank.input_wait is None for rank in ranks):
        reasons["input"] = "the trace holds no record of a data loader"
    if all(rank.stalls is None for rank in ranks):
        reasons["stalls"] = str(getattr(ranks[0].split_of_input, "reason", ""))
    reasons |= memory_not_measured(run)
    if all(rank.communication is None for rank in ranks):
        reasons["communication"] = (
            not_idle_because(ranks[0])
            if ranks[0].device_indices or ranks[0].voids("devices")
            else "the trace holds neither device work nor operators"
        )
    if run.record is None:
        from workbench.findings.torch_calls import in_profiler_words

        reasons = {name: in_profiler_words(reason) for name, reason in reasons.items()}
    return reasons


def _no_step_time(run: Run) -> bool:
    """Whether steps are marked, but too few of them to tell how long one takes."""
    recorded = run.record is not None and run.record.timings is not None
    steps = [rank.steps for rank in run.ranks if rank.steps is not None]
    return not recorded and not any(len(each.time_ns) for each in steps)


def not_idle_because(rank: RankAnalysis) -> str:
    """Why nothing is known about the idle time of a rank's devices."""
    if rank.device_indices:
        return "no device work was launched in a complete step"
    if rank.voids("devices"):
        return "a device is present but none of its work was recorded"
    return "the trace holds no device work (CPU only)"


def summary_document(
    ranks: Sequence[RankAnalysis],
    record: RunRecord | None,
    findings: Sequence[Finding],
    job: Job | None = None,
) -> dict[str, Any]:
    """The whole document; ``null`` means not measured, 0 measured and zero."""
    from workbench.version import version

    document: dict[str, Any] = {
        "schema": SCHEMA,
        "version": version(),
        "overhead_ratio": None if record is None else record.overhead_ratio,
        "ranks": [_rank(rank, record, job) for rank in ranks],
        "findings": [finding.to_json() for finding in findings],
    }
    if job is not None:
        document["straggler"] = _straggler(job)
    return document


def _straggler(job: Job | None) -> dict[str, Any] | None:
    found = None if job is None else job.straggler
    if found is None:
        return None
    return {
        "rank": found.rank,
        "wait_deficit_us_per_step": found.wait_deficit_ns_per_step / 1000,
        "phase": found.phase,
    }


def _rank(rank: RankAnalysis, record: RunRecord | None, job: Job | None) -> dict[str, Any]:
    told = _rank_document(rank, record)
    if job is not None:
        job.rest(rank)
    return told


def _rank_document(rank: RankAnalysis, record: RunRecord | None) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "source": rank.source,
        "trust": _trust(rank),
        "steps": _steps(rank),
        "range": _range(rank),
        "samples_per_s": _samples_per_s(record),
        "devices": [_device(rank, index) for index in rank.device_indices],
        "host_breakdown_us": _all_us(rank.host_breakdown),
        "input": _input(rank),
        "launches": _launches(rank),
        "kernels": summary_tables.kernels(rank.kernels),
        "operators": summary_tables.operators(rank.operators),
        "straggler": None,
        "communication": summary_tables.communication(rank.communication),
        "memory": _memory(rank),
        **breadth(rank),
        **rank.replayed.document(),
    }


def _trust(rank: RankAnalysis) -> dict[str, Any]:
    return {
        "ok": rank.trust.ok,
        "violations": [
            {
                "code": v.code,
                "count": v.count,
                "share": v.share,
                "voids": list(v.voids),
                "message": v.message,
            }
            for v in rank.trust.violations
        ],
    }


def _steps(rank: RankAnalysis) -> dict[str, Any] | None:
    steps = rank.steps
    if steps is None:
        return None
    return {
        "source": steps.source,
        "first": int(steps.numbers[0]) if steps.numbers else None,
        "last": int(steps.numbers[-1]) if steps.numbers else None,
        "count": len(steps.numbers),
        "dropped": int(steps.dropped),
        "time_us": times_us(steps.time_ns[steps.warmup :]),
        "host_us": times_us(steps.host_ns),
    }


def times_us(times_ns: Sequence[int] | Any) -> dict[str, float | None]:
    """Mean, median and 95th percentile in microseconds, the last only from 20 steps on."""
    import numpy as np

    values = np.asarray(times_ns, dtype=np.float64)
    if not len(values):
        return {"mean": None, "median": None, "p95": None}
    p95 = float(np.percentile(values, 95)) / 1000 if len(values) >= LEAST_STEPS_P95 else None
    return {
        "mean": float(values.mean()) / 1000,
        "median": float(np.median(values)) / 1000,
        "p95": p95,
    }


def _range(rank: RankAnalysis) -> dict[str, Any] | None:
    window = rank.host_window  # as ``base_ns``, on the host's clock: before it there is nothing
    if window is None:
        return None
    return {
        "start_us": window.start / 1000,
        "end_us": window.end / 1000,
        "base_ns": rank.trace.base_ns,
    }


def _samples_per_s(record: RunRecord | None) -> float | None:
    if record is None or record.timings is None or record.samples_per_step is None:
        return None
    steady = record.timings.step_ns[record.timings.warmup :]
    median = times_us(steady)["median"]
    return record.samples_per_step / (median / 1e6) if median else None


def _device(rank: RankAnalysis, index: int) -> dict[str, Any]:
    device = device_of(rank, index)
    recorded, in_window = rank.recorded_time.get(index), rank.device_time.get(index)
    return {
        "index": index,
        "type": device.type if device else None,
        "name": (device.name or None) if device else None,
        "arch": (device.arch or None) if device else None,
        "memory_bytes": device.memory_bytes if device else None,
        "clock_offset_us": microseconds(rank.launches.clock_offset.get(index)),
        "recording": None
        if recorded is None
        else {"time": _time(recorded), "idle": _idle(rank.recorded_idle[index])},
        "window": None if in_window is None else _window(rank, index, in_window),
        "breakdown_us": None if in_window is None else _all_us(rank.breakdown(index)),
    }


def device_of(rank: RankAnalysis, index: int) -> Device | None:
    """The header's description of a device, if the file has one."""
    return next((d for d in rank.details.devices if d.index == index), None)


def _window(rank: RankAnalysis, index: int, time: DeviceTime) -> dict[str, Any]:
    from workbench.analysis.window import foreign_share

    return {
        "time": _time(time),
        "idle": _idle(rank.idle[index]),
        "foreign_share": foreign_share(rank.trace, index, time.range, rank.steps, rank.launches),
    }


def _time(time: DeviceTime) -> dict[str, float]:
    return {
        "span_us": time.range.length / 1000,
        "busy_us": time.busy / 1000,
        "compute_us": time.compute / 1000,
        "communication_us": time.communication / 1000,
        "memory_us": time.memory / 1000,
        "exposed_communication_us": time.exposed_communication / 1000,
        "exposed_memory_us": time.exposed_memory / 1000,
        "idle_us": time.idle / 1000,
    }


def _idle(idle: Idle) -> dict[str, Any]:
    return {
        "gaps": int(idle.gaps),
        "largest_us": idle.largest / 1000,
        "by_cause": _all_us(idle.by_cause),
    }


def _input(rank: RankAnalysis) -> dict[str, Any] | None:
    wait = rank.input_wait
    if wait is None:
        return None
    return {
        "wait_us": wait.wait_ns / 1000,
        "exposed_us": microseconds(rank.exposed_input_ns),
        "batches": int(wait.batches),
        **stalls_json(rank),
    }


def _launches(rank: RankAnalysis) -> dict[str, Any] | None:
    found = rank.launch_statistics
    if found is None:
        return None
    return {
        "count": int(found.count),
        "per_step": found.per_step,
        "into_empty_queue_share": found.into_empty_queue_share,
        "queue_median": found.queue_median,
    }


def _memory(rank: RankAnalysis) -> dict[str, Any] | None:
    from workbench.run.memory import memory_json

    found, devices = rank.memory, rank.memory_devices
    if found is None and not devices:
        return None
    return {
        "peak_bytes": devices[0].peak_bytes if found is None else found.peak_bytes,
        "device_allocations_per_step": None if found is None else found.device_allocations_per_step,
        **memory_json(rank),
    }


def _all_us(parts: Mapping[str, int | None] | None) -> dict[str, float | None] | None:
    return None if parts is None else {name: microseconds(ns) for name, ns in parts.items()}
