"""The scale of fp16 gradients over a run, kept without waiting for the device in any step."""

from typing import Any

import torch
from torch import Tensor
from torch.amp.grad_scaler import GradScaler


class ScaleLog:
    """Scale and skipped steps; a copy of the scale is read only when somebody asks."""

    def __init__(self) -> None:
        self._scales: list[Tensor] = []
        self._skipped: list[int] = []
        self._told = True
        self._interval: int | None = None

    def add(self, scaler: GradScaler, *, stepped: bool | None) -> None:
        """Note one optimizer step, after the scaler's update.

        Args:
            scaler: Whose scale.
            stepped: Whether the optimizers stepped; ``None`` where only the device knows.
        """
        scale = getattr(scaler, "_scale", None)
        if not isinstance(scale, Tensor):
            return
        self._interval = scaler.get_growth_interval()
        self._told &= stepped is not None
        if stepped is False:
            self._skipped.append(len(self._scales))
        with torch.no_grad():
            self._scales.append(scale.detach().clone())

    def to_json(self) -> dict[str, Any] | None:
        """Plain values for ``run.json``; waits for the device. ``None`` if nothing was scaled."""
        if not self._scales:
            return None
        values = [float(scale) for scale in torch.stack(self._scales).tolist()]
        changes: list[list[float]] = []
        for step, value in enumerate(values):
            if not changes or changes[-1][1] != value:
                changes.append([step, value])
        # A scale that falls is a step that overflowed: so a fused optimizer's skips show, too.
        fell = [i for i in range(1, len(values)) if values[i] < values[i - 1]]
        return {
            "steps": len(values),
            "scales": changes,
            "skipped_at": self._skipped if self._told else fell,
            "growth_interval": self._interval,
        }
