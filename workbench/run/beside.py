"""What stands beside the step times of two Runs: the memory that they held, and their loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.units import NOT_MEASURED, bytes_text

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
    for name, label in MEMORY.items():
        a, b = (_memory(run, name) for run in (first, second))
        if a or b:
            rows.append((label, bytes_text(a), bytes_text(b)))
    losses = [None if run.record is None else run.record.loss for run in (first, second)]
    if any(loss is not None for loss in losses):
        rows.append(("loss of the last step measured", _loss(losses[0]), _loss(losses[1])))
    return rows


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
