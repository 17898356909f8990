"""The memory that a rule looks at: how full, and whether it grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.analysis.memory.phase_peaks import VALIDATION

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.memory.answer import DeviceMemory


@dataclass(frozen=True, kw_only=True)
class MemoryPressure:
    """One memory as it stands to its limit and over its steps."""

    device: str
    peak_bytes: int
    limit_bytes: int | None
    """Of the device; ``None`` where nobody told, and for the host."""
    steps: int
    bytes_per_step: float
    """Of the bytes live at the ends of steps; 0 for too few steps."""
    worst_bytes_per_step: float
    median_bytes_per_step: float
    chance: float
    grows: bool
    largest: str
    """What kept the largest part of it, where that was seen."""
    largest_share: float = 0.0
    """Its part of the growth."""
    training_peak_bytes: int | None = None
    """In forward, backward and the optimizer; ``None`` where nothing tells the phases."""
    validation_peak_bytes: int | None = None
    validation_autograd: bool | None = None
    """Whether validation records what only a backward pass needs."""


def pressure(found: DeviceMemory, limit_bytes: int | None) -> MemoryPressure:
    """What a rule needs of one memory."""
    grows = found.growth
    largest, share = _largest(found.growing)
    training, validation, autograd = _phases(found.phases)
    return MemoryPressure(
        device=found.device.label,
        peak_bytes=found.peak_bytes,
        limit_bytes=limit_bytes if found.device.type and found.absolute else None,
        steps=0 if grows is None else grows.steps,
        bytes_per_step=0.0 if grows is None else grows.bytes_per_step,
        worst_bytes_per_step=0.0 if grows is None else grows.worst_bytes_per_step,
        median_bytes_per_step=0.0 if grows is None else grows.median_bytes_per_step,
        chance=1.0 if grows is None else grows.chance,
        grows=grows is not None and grows.grows and grows.bytes_per_step > 0,
        largest=largest,
        largest_share=share,
        training_peak_bytes=training,
        validation_peak_bytes=validation,
        validation_autograd=autograd,
    )


def _largest(growing: pd.DataFrame | None) -> tuple[str, float]:
    """What keeps the most of what grows, and how much of it; a line may keep it in several rows."""
    if growing is None or not len(growing):
        return "", 0.0
    columns = zip(growing["line"], growing["module"], growing["operator"], strict=True)
    names = [next((str(each) for each in row if each), "") for row in columns]
    sums = growing["bytes_per_step"].groupby(names).sum()
    known = sums.drop("", errors="ignore")
    if not len(known) or not sums.sum() > 0:
        return "", 0.0
    return str(known.idxmax()), float(known.max() / sums.sum())


def _phases(table: pd.DataFrame | None) -> tuple[int | None, int | None, bool | None]:
    """Peaks of training and of validation, and whether validation records for backward."""
    if table is None:
        return None, None, None
    peaks = dict(zip(table["phase"], table["peak_bytes"].tolist(), strict=True))
    training = [peaks[name] for name in ("forward", "backward", "optimizer") if name in peaks]
    grad = table.loc[table["phase"] == VALIDATION, "autograd"].tolist()
    known = bool(grad[0]) if grad and grad[0] in (True, False) else None
    return max(training, default=None), peaks.get(VALIDATION), known
