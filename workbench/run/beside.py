"""What stands beside the step times of two Runs: samples per second, memory, and their loss."""

from __future__ import annotations

import itertools
import statistics
from typing import TYPE_CHECKING, Any

from workbench.units import NOT_MEASURED, bytes_text, count_text

if TYPE_CHECKING:
    from workbench.run.run import Run

MEMORY = {
    "peak_rss_bytes": "peak memory of the process",
    "workers_bytes": "memory of loader processes",
    "device_peak_bytes": "peak memory on the device",
}


def beside(first: Run, second: Run) -> list[tuple[str, str, str]]:
    """Label and both values, as text, of what at least one side has."""
    rows = []
    rates = [samples_per_s(run) for run in (first, second)]
    if any(rate is not None for rate in rates):
        told = [NOT_MEASURED if rate is None else count_text(rate) for rate in rates]
        rows.append(("samples per second", told[0], told[1]))
    for name, label in MEMORY.items():
        a, b = (_memory(run, name) for run in (first, second))
        if a or b:
            rows.append((label, bytes_text(a), bytes_text(b)))
    losses = [None if run.record is None else run.record.loss for run in (first, second)]
    if any(loss is not None for loss in losses):
        rows.append(("loss of the last step measured", _loss(losses[0]), _loss(losses[1])))
    pairs = _pairs(first, second)
    if pairs:
        a, b = (sum(side) / len(pairs) for side in zip(*pairs, strict=True))
        rows.append((f"mean loss of the first {len(pairs)} steps", _loss(a), _loss(b)))
    return rows


def _pairs(first: Run, second: Run) -> list[tuple[float, float]]:
    """The losses of the first steps of both, as long as both have one."""
    a, b = (run.losses or () for run in (first, second))
    pairs = zip(a, b, strict=False)
    whole = itertools.takewhile(lambda pair: None not in pair, pairs)
    return list(whole)  # type: ignore[arg-type]


def samples_per_s(run: Run) -> float | None:
    """Samples of all ranks in a second, by the median step of record; ``None``: not counted."""
    record = run.record
    if record is None or record.timings is None or not record.samples_per_step:
        return None
    steady = record.timings.step_ns[record.timings.warmup :]
    return record.samples_per_step / statistics.median(steady) * 1e9 if steady else None


def beside_json(first: Run, second: Run) -> dict[str, Any]:
    """The same for the document; ``null`` means not measured."""
    found: dict[str, Any] = {
        name: {"first": _memory(first, name), "second": _memory(second, name)} for name in MEMORY
    }
    a, b = (None if run.record is None else run.record.loss for run in (first, second))
    return {"memory": found, "loss": {"first": a, "second": b}}


def _memory(run: Run, name: str) -> int | None:
    peak = None if run.record is None else run.record.peak_memory
    return None if peak is None else peak.get(name)


def _loss(loss: float | None) -> str:
    return NOT_MEASURED if loss is None else f"{loss:.4g}"
