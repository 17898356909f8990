"""What a Run shows of itself: its answers as the plain results that pages are made of."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from workbench.pages.frames import kernels_table, operators_table, steps_table
from workbench.pages.table import Column, Table
from workbench.pages.view import Breakdown, RunView
from workbench.run.rank import RankAnalysis
from workbench.run.summary import device_breakdown, device_of
from workbench.units import count_text, share_text, significant, time_text

if TYPE_CHECKING:
    from workbench.run.run import Run
    from workbench.store.record import RunRecord


def view(run: Run) -> RunView:
    """The page of a Run; with several ranks, the first one's times stand for all."""
    first = run.ranks[0]
    return RunView(
        title=run.name,
        verdict=verdict(run),
        findings=run.findings,
        breakdowns=breakdowns(first),
        tables=_tables(run, first),
        measured=_measured(run),
        trust=tuple(v.message for rank in run.ranks for v in rank.trust.violations),
        not_measured=run.summary.not_measured,
    )


def verdict(run: Run) -> str:
    """The Run in one sentence: what limits it, or that nothing was found."""
    found = [f for f in run.findings if f.code[:3] != "WB9"]
    step = _step_sentence(run)
    if found:
        return f"{found[0].title} {step}".strip()
    ok = all(rank.trust.ok for rank in run.ranks)
    said = "No bottleneck was found by the rules of this version."
    return f"{said} {step}".strip() if ok else f"Cannot tell what limits this program. {step}"


def _step_sentence(run: Run) -> str:
    timings = None if run.record is None else run.record.timings
    if timings is not None and timings.step_ns[timings.warmup :]:
        steady = timings.step_ns[timings.warmup :]
        return f"A step takes {time_text(statistics.median(steady))}, median of {len(steady)}."
    steps = run.ranks[0].steps
    if steps is None or not len(steps.time_ns[steps.warmup :]):
        return ""
    middle = statistics.median(int(ns) for ns in steps.time_ns[steps.warmup :])
    return f"Under the profiler a step takes {time_text(middle)}."


def breakdowns(rank: RankAnalysis) -> tuple[Breakdown, ...]:
    """Where the window goes, for every device, or for the loop's thread without one."""
    steps = None if rank.steps is None else len(rank.steps.numbers) or None
    if rank.device_time:
        return tuple(
            Breakdown(
                label=device_label(rank, index),
                parts_ns=device_breakdown(time, rank.idle[index]),
                total_ns=time.range.length,
                steps=steps,
            )
            for index, time in rank.device_time.items()
        )
    if rank.host_breakdown is None or rank.window is None:
        return ()
    return (
        Breakdown(
            label="the loop's thread",
            parts_ns=rank.host_breakdown,
            total_ns=rank.window.length,
            steps=steps,
        ),
    )


def device_label(rank: RankAnalysis, index: int) -> str:
    """A device as people call it, such as ``GPU 0 (NVIDIA A100-SXM4-40GB)``."""
    device = device_of(rank, index)
    label = f"GPU {index}" if device is None or device.type in _GPUS else f"device {index}"
    return f"{label} ({device.name})" if device is not None and device.name else label


_GPUS = ("cuda", "hip", "xpu")


def _tables(run: Run, rank: RankAnalysis) -> tuple[Table, ...]:
    tables = []
    timings = None if run.record is None else run.record.timings
    if timings is not None:
        tables.append(
            steps_table(timings.step_ns, warmup=timings.warmup, input_ns=timings.input_ns or None)
        )
    elif rank.steps is not None:
        tables.append(steps_table(rank.steps.time_ns, warmup=rank.steps.warmup, input_ns=None))
    if rank.device_time:
        tables.append(_devices(rank))
    if rank.kernels is not None:
        tables.append(kernels_table(rank.kernels))
    tables.append(operators_table(rank.operators))
    return tuple(tables)


def _devices(rank: RankAnalysis) -> Table:
    rows = [
        (
            device_label(rank, index),
            time.range.length,
            time.busy,
            time.busy / time.range.length if time.range.length else None,
            time.exposed_communication,
            time.exposed_memory,
            time.idle,
        )
        for index, time in rank.device_time.items()
    ]
    names = ("window", "busy", "busy share", "exposed communication", "exposed copies", "idle")
    columns = [Column(name="device", kind="name")]
    columns += [Column(name=n, kind="share" if n == "busy share" else "time") for n in names]
    return Table(caption="Devices in the window", columns=tuple(columns), rows=tuple(rows))


def _measured(run: Run) -> tuple[tuple[str, str], ...]:
    rows = [("trace", ", ".join(trace.name for trace in run.traces))]
    if run.record is not None:
        rows += _recorded(run.record)
    rows += [("note", note) for note in run.notes]
    return tuple(rows)


def _recorded(record: RunRecord) -> list[tuple[str, str]]:
    rows = [("recorded", record.created), ("settings", _pairs(record.settings) or "as it is")]
    rows.append(("in force", _pairs(record.effective)))
    if record.timings is not None:
        warmup = record.timings.warmup
        count = count_text(len(record.timings.step_ns) - warmup)
        said = f"{count} without the profiler, after {warmup} of warm-up"
        rows.append(("steps of record", said))
        rows.append(("noise", _noise(record)))
    if record.overhead_ratio is not None:
        said = f"{significant(record.overhead_ratio)} times a step without it"
        rows.append(("a step under the profiler", said))
    rows.append(("versions", _pairs(record.environment)))
    rows += [("warning", warning) for warning in record.warnings]
    return rows


def _noise(record: RunRecord) -> str:
    from workbench.run.facts import steady_blocks
    from workbench.statistics.noise import noise_floor

    assert record.timings is not None
    floor = noise_floor(steady_blocks(record.timings))
    if floor is None:
        return "not measured"
    return f"identical steps differ by {share_text(floor)} between two halves of the measurement"


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_plain(value)}" for name, value in values.items() if _said(value))


def _said(value: Any) -> bool:
    return value is not None and value not in ([], {}, "")


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(str(item) for item in value)
    return str(value)
