"""What the modes of fp32 products do on a device: TF32, bf16 inside, or nothing at all."""

from dataclasses import dataclass

from workbench.machine.dtypes import TIME_LIMIT_S
from workbench.machine.probing import trial_of

MODES = ("high", "medium")


@dataclass(frozen=True, kw_only=True)
class MatmulMode:
    """One mode of ``torch.set_float32_matmul_precision``; ``None`` where it was not tried."""

    mode: str
    acts: bool | None
    """Whether a product comes out differently from the exact mode, ``highest``."""
    ratio: float | None
    """Time of a product ÷ time in the exact mode."""


def matmul_modes(device: str = "cpu", time_limit_s: float = TIME_LIMIT_S) -> tuple[MatmulMode, ...]:
    """What each mode does on ``device``; tried in the process that also tries dtypes."""
    found = trial_of(device, time_limit_s)["modes"]
    return tuple(
        MatmulMode(
            mode=mode,
            acts=found.get(mode, {}).get("acts"),
            ratio=found.get(mode, {}).get("ratio"),
        )
        for mode in MODES
    )
